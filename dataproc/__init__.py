"""From raw crawl to versioned Parquet shards: sources, stages, global steps, versions and their report."""
