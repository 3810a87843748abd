// A small web service with the usual costs: JSON, a search in its own code, exceptions for bad requests, a lock
// that requests wait for, and a warehouse that answers slowly over TCP. It sends requests to itself and stops.
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Net.Sockets;
using System.Text;
using System.Text.Json;
using System.Threading;
using System.Threading.Tasks;

namespace Shop
{
    public sealed record Line(string Name, int Count);

    public sealed record Order(string Customer, List<Line> Lines);

    public sealed record Offer(string Customer, decimal Total, List<string> Products);

    public static class Program
    {
        public static async Task Main(string[] args)
        {
            double seconds = args.Length > 0 ? double.Parse(args[0]) : 3;
            using var stop = new CancellationTokenSource(TimeSpan.FromSeconds(seconds));
            int warehouse = Warehouse.Start();
            int port = FreePort();
            var service = new Service(port, new Catalog(), new Stock(warehouse));
            Task serving = service.RunAsync();
            int answered = await Customers.SendAsync(port, stop.Token);
            service.Stop();
            await serving;
            Console.WriteLine($"{answered} requests answered");
        }

        private static int FreePort()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            int port = ((IPEndPoint)listener.LocalEndpoint).Port;
            listener.Stop();
            return port;
        }
    }

    // Requests, one after the other on each of a few connections.
    public sealed class Service
    {
        private readonly HttpListener listener = new HttpListener();
        private readonly Catalog catalog;
        private readonly Stock stock;
        private readonly Statistics statistics = new Statistics();

        public Service(int port, Catalog catalog, Stock stock)
        {
            this.catalog = catalog;
            this.stock = stock;
            listener.Prefixes.Add($"http://127.0.0.1:{port}/");
        }

        public async Task RunAsync()
        {
            listener.Start();
            while (listener.IsListening)
            {
                HttpListenerContext context;
                try
                {
                    context = await listener.GetContextAsync();
                }
                catch (Exception e) when (e is HttpListenerException || e is ObjectDisposedException)
                {
                    return;
                }
                _ = Task.Run(() => AnswerAsync(context));
            }
        }

        public void Stop() => listener.Stop();

        private async Task AnswerAsync(HttpListenerContext context)
        {
            var watch = Stopwatch.StartNew();
            try
            {
                await QuoteAsync(context);
            }
            catch (JsonException)
            {
                context.Response.StatusCode = 400;
            }
            finally
            {
                context.Response.Close();
            }
            statistics.Add(watch.Elapsed);
        }

        private async Task QuoteAsync(HttpListenerContext context)
        {
            using var reader = new StreamReader(context.Request.InputStream, Encoding.UTF8);
            string body = await reader.ReadToEndAsync();
            Order order = JsonSerializer.Deserialize<Order>(body);
            var products = new List<string>();
            decimal total = 0;
            foreach (Line line in order.Lines)
            {
                Product product = catalog.Find(line.Name);
                products.Add(product.Name);
                total += product.Price * line.Count;
            }
            stock.Check(products[0]);
            var offer = new Offer(order.Customer, total, products);
            await JsonSerializer.SerializeAsync(context.Response.OutputStream, offer);
        }
    }

    public sealed record Product(string Name, decimal Price);

    // Products by name, with typing errors.
    public sealed class Catalog
    {
        private readonly List<Product> products = new List<Product>();

        public Catalog()
        {
            string[] kinds = { "lamp", "chair", "table", "shelf", "carpet", "mirror", "clock", "vase" };
            string[] colours = { "red", "green", "blue", "white", "black", "brown", "grey", "yellow" };
            foreach (string kind in kinds)
                foreach (string colour in colours)
                    for (int size = 1; size <= 4; size++)
                        products.Add(new Product($"{colour} {kind} {size}", 10 + size * kind.Length));
        }

        public Product Find(string name)
        {
            Product best = products[0];
            int least = int.MaxValue;
            foreach (Product product in products)
            {
                int distance = Distance(name, product.Name);
                if (distance < least)
                    (least, best) = (distance, product);
            }
            return best;
        }

        // The number of letters to change, insert or remove.
        private static int Distance(string a, string b)
        {
            int[] row = new int[b.Length + 1];
            for (int j = 0; j <= b.Length; j++)
                row[j] = j;
            for (int i = 1; i <= a.Length; i++)
            {
                int diagonal = row[0];
                row[0] = i;
                for (int j = 1; j <= b.Length; j++)
                {
                    int change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
                    diagonal = row[j];
                    row[j] = Math.Min(change, Math.Min(row[j], row[j - 1]) + 1);
                }
            }
            return row[b.Length];
        }
    }

    // Times of requests. All threads wait for one lock while the slowest are found.
    public sealed class Statistics
    {
        private readonly object gate = new object();
        private readonly List<double> times = new List<double>();

        public void Add(TimeSpan time)
        {
            lock (gate)
            {
                times.Add(time.TotalMilliseconds);
                Slowest();
            }
        }

        private double Slowest()
        {
            var sorted = new List<double>(times);
            sorted.Sort();
            return sorted[sorted.Count * 99 / 100];
        }
    }

    // Asks the warehouse, and blocks a thread until it answers.
    public sealed class Stock
    {
        private readonly int port;

        public Stock(int port) => this.port = port;

        public int Check(string product)
        {
            using var client = new TcpClient("127.0.0.1", port);
            NetworkStream stream = client.GetStream();
            stream.Write(Encoding.UTF8.GetBytes(product + "\n"));
            var answer = new byte[4];
            int read = stream.Read(answer, 0, 4);
            return read == 4 ? BitConverter.ToInt32(answer, 0) : 0;
        }
    }

    // Another machine, in effect: it takes some milliseconds for each question.
    public static class Warehouse
    {
        public static int Start()
        {
            var listener = new TcpListener(IPAddress.Loopback, 0);
            listener.Start();
            _ = ListenAsync(listener);
            return ((IPEndPoint)listener.LocalEndpoint).Port;
        }

        private static async Task ListenAsync(TcpListener listener)
        {
            while (true)
                _ = AnswerAsync(await listener.AcceptTcpClientAsync());
        }

        private static async Task AnswerAsync(TcpClient client)
        {
            using (client)
            {
                var question = new byte[64];
                await client.GetStream().ReadAsync(question);
                await Task.Delay(12);
                await client.GetStream().WriteAsync(BitConverter.GetBytes(42));
            }
        }
    }

    // Clients, each with one request at a time; every tenth request is not valid JSON.
    public static class Customers
    {
        private const int Connections = 6;

        public static async Task<int> SendAsync(int port, CancellationToken stop)
        {
            using var http = new HttpClient { BaseAddress = new Uri($"http://127.0.0.1:{port}/") };
            var all = new List<Task<int>>();
            for (int i = 0; i < Connections; i++)
                all.Add(ShopAsync(http, i, stop));
            int sum = 0;
            foreach (int answered in await Task.WhenAll(all))
                sum += answered;
            return sum;
        }

        private static async Task<int> ShopAsync(HttpClient http, int customer, CancellationToken stop)
        {
            int sent = 0;
            while (!stop.IsCancellationRequested)
            {
                var lines = new List<Line>();
                for (int i = 0; i < 24; i++)
                    lines.Add(new Line($"gren {(i % 2 == 0 ? "chiar" : "taple")} {i % 4 + 1}", i));
                string body = JsonSerializer.Serialize(new Order($"customer {customer}", lines));
                if (++sent % 10 == 0)
                    body = body.Substring(0, body.Length / 2);
                using HttpResponseMessage answer = await http.PostAsync("quote", new StringContent(body));
                await answer.Content.ReadAsStringAsync();
            }
            return sent;
        }
    }
}
