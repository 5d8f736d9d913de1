"""Who wants it: from a notification to the ids of the filters that it satisfies."""
