// Compiles C# with Roslyn's assemblies on a runtime without an SDK: Csc ROSLYN_FOLDER REFERENCES OPTION… SOURCE…
//
// REFERENCES are folders and files, separated by colons; options are those of csc. mono's mcs builds this program, and cannot refer to
// Roslyn's assemblies, which are for a later runtime: so it calls them by name.
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;
using System.Text;

static class Csc
{
    static int Main(string[] arguments)
    {
        AppDomain.CurrentDomain.AssemblyResolve += (sender, missing) =>
        {
            var file = Path.Combine(arguments[0], new AssemblyName(missing.Name).Name + ".dll");
            return File.Exists(file) ? Assembly.LoadFrom(file) : null;
        };
        return Compile(arguments[0], arguments[1].Split(':'), arguments.Skip(2).ToArray());
    }

    static int Compile(string roslyn, string[] references, string[] options)
    {
        var common = Assembly.LoadFrom(Path.Combine(roslyn, "Microsoft.CodeAnalysis.dll"));
        var csharp = Assembly.LoadFrom(Path.Combine(roslyn, "Microsoft.CodeAnalysis.CSharp.dll"));
        Func<string, Type> type = it => csharp.GetType("Microsoft.CodeAnalysis.CSharp." + it) ?? common.GetType("Microsoft.CodeAnalysis." + it);

        var parser = type("CSharpCommandLineParser");
        var given = Call(Method(parser, "Parse", it => it.ReturnType == type("CSharpCommandLineArguments")),
            parser.GetProperty("Default").GetValue(null, null), options, Directory.GetCurrentDirectory(), null);
        var trees = List(type("SyntaxTree"));
        var parse = Method(type("CSharpSyntaxTree"), "ParseText", it => it.GetParameters()[0].ParameterType == typeof(string));
        foreach (var source in (IEnumerable)Get(given, "SourceFiles"))
        {
            var path = (string)Get(source, "Path");
            trees.Add(Call(parse, null, File.ReadAllText(path), Get(given, "ParseOptions"), path, Encoding.UTF8));
        }
        var metadata = List(type("MetadataReference"));
        var fromFile = Method(type("MetadataReference"), "CreateFromFile", it => it.GetParameters()[0].ParameterType == typeof(string));
        var files = references.SelectMany(it => Directory.Exists(it) ? Directory.GetFiles(it, "*.dll") : new[] { it });
        foreach (var file in files.Where(IsManaged))
        {
            metadata.Add(Call(fromFile, null, file));
        }

        var name = (string)Get(given, "OutputFileName");
        var output = Path.Combine((string)Get(given, "OutputDirectory"), name);
        var compilation = Call(Method(type("CSharpCompilation"), "Create", it => true), null,
            Path.GetFileNameWithoutExtension(name), trees, metadata, Get(given, "CompilationOptions"));
        var emit = type("Compilation").GetMethods().Where(it => it.Name == "Emit").OrderByDescending(it => it.GetParameters().Length).First();
        object result;
        using (var program = File.Create(output))
        using (var symbols = File.Create(Path.ChangeExtension(output, ".pdb")))
        using (var docs = File.Create(Path.ChangeExtension(output, ".xml")))
        {
            var values = new Dictionary<string, object>
            {
                { "peStream", program }, { "pdbStream", symbols }, { "xmlDocumentationStream", docs }, { "options", Get(given, "EmitOptions") },
            };
            result = emit.Invoke(compilation, emit.GetParameters().Select(it => values.ContainsKey(it.Name) ? values[it.Name] : Default(it)).ToArray());
        }
        foreach (var diagnostic in (IEnumerable)Get(result, "Diagnostics"))
        {
            if (Get(diagnostic, "Severity").ToString() != "Hidden")
            {
                Console.WriteLine(diagnostic);
            }
        }
        return (bool)Get(result, "Success") ? 0 : 1;
    }

    static bool IsManaged(string file)
    {
        try
        {
            return AssemblyName.GetAssemblyName(file) != null;
        }
        catch (BadImageFormatException)
        {
            return false;
        }
    }

    static IList List(Type element)
    {
        return (IList)Activator.CreateInstance(typeof(List<>).MakeGenericType(element));
    }

    // The overload with the most parameters that are not obsolete.
    static MethodInfo Method(Type type, string name, Func<MethodInfo, bool> fits)
    {
        return type.GetMethods().Where(it => it.Name == name && it.GetParameters().Length > 0 && fits(it)).OrderBy(it => it.GetParameters().Length).First();
    }

    static object Call(MethodInfo method, object self, params object[] given)
    {
        var all = method.GetParameters().Select((it, i) => i < given.Length ? given[i] : Default(it));
        return method.Invoke(self, all.ToArray());
    }

    static object Default(ParameterInfo parameter)
    {
        var value = parameter.HasDefaultValue ? parameter.DefaultValue : null;
        return value ?? (parameter.ParameterType.IsValueType ? Activator.CreateInstance(parameter.ParameterType) : null);
    }

    static object Get(object target, string property)
    {
        return target.GetType().GetProperties().First(it => it.Name == property).GetValue(target, null);
    }
}
