"""Knowledge bundles: folders of Markdown concepts with YAML frontmatter (ledger spec §13)."""
