"""The fields of a key, but for the build, of some kernel."""

FIELDS = {
    "kernel": "k",
    "arguments": "a",
    "constexprs": "c",
    "target": "sm_90a",
    "num_warps": "None",
    "math": "exact",
    "tiles": "any",
}
