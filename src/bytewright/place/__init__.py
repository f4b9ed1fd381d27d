"""Where devices and memories let values be: virtual devices in the graph, and after lowering scopes and pools."""
