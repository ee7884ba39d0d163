"""Knowledge bundles: folders of Markdown concepts with YAML frontmatter, read, linted, walked and projected (spec §13)."""
