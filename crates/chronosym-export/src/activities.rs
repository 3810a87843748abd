//! Activities by the ids that events state: their labels, and stacks below them.

use chronosym_core::{
    ActivityIdIndex, EventTypeId, FrameId, Profile, ResolvedStack, Resolver, Timeline,
};
use rustc_hash::FxHashMap;

/// Makes the activity that the thread carried the outermost frame of each stack. The session kept
/// activity ids ([`Options::activity_ids`](chronosym_core::Options::activity_ids)).
pub fn root_by_activity(profile: &mut Profile) {
    let mut roots = ActivityRoots::default();
    for entry in &mut profile.entries {
        entry.stack = roots.root(&mut profile.resolver, entry.stack, entry.activity_id);
    }
}

/// The stacks of one resolver below the activities of their threads.
#[derive(Debug, Default)]
pub(crate) struct ActivityRoots {
    frames: FxHashMap<Option<ActivityIdIndex>, FrameId>,
    /// By stack and activity.
    rooted: FxHashMap<(ResolvedStack, Option<ActivityIdIndex>), ResolvedStack>,
}

impl ActivityRoots {
    pub fn root(
        &mut self,
        resolver: &mut Resolver,
        stack: ResolvedStack,
        activity: Option<ActivityIdIndex>,
    ) -> ResolvedStack {
        let frame = *self.frames.entry(activity).or_insert_with(|| {
            let label = activity_label(resolver.timeline(), activity);
            resolver.add_group(&label)
        });
        // Up to a stack that is known, then down again.
        let mut path = Vec::new();
        let mut callers = None;
        let mut next = Some(stack);
        while let Some(stack) = next {
            if let Some(&known) = self.rooted.get(&(stack, activity)) {
                callers = Some(known);
                break;
            }
            path.push(stack);
            next = resolver.caller(stack);
        }
        let mut rooted = callers.unwrap_or_else(|| resolver.calling(None, frame));
        for stack in path.into_iter().rev() {
            rooted = resolver.calling(Some(rooted), resolver.leaf(stack));
            self.rooted.insert((stack, activity), rooted);
        }
        rooted
    }
}

/// Returns the label of an activity: the event that started it, and the id.
pub(crate) fn activity_label(timeline: &Timeline, activity: Option<ActivityIdIndex>) -> String {
    let Some(activity) = activity.and_then(|activity| timeline.activity_id(activity)) else {
        return "[no activity]".to_owned();
    };
    let of_type = |event: EventTypeId| timeline.event_types().get(event.index());
    match activity.started_by.and_then(of_type) {
        Some(by) => {
            let schema = &by.schema;
            format!(
                "{}/{} {}",
                schema.provider_name(),
                schema.name(),
                activity.id
            )
        }
        None => activity.id.to_string(),
    }
}
