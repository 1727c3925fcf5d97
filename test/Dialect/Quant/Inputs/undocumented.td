include "mlir/IR/OpBase.td"

def Bad : Dialect {
  let name = "bad";
  let cppNamespace = "::bad";
}
def Bad_Nothing : Op<Bad, "nothing", [NoTerminator]>;
def Bad_Summarized : Op<Bad, "summarized"> {
  let summary = "a summary";
  let arguments = (ins I64Attr:$value);
  let assemblyFormat = "$value attr-dict";
}
def Bad_Described : Op<Bad, "described"> {
  let summary = "a summary";
  let description = "A description.";
}
def Bad_Complete : Op<Bad, "complete"> {
  let summary = "a summary";
  let description = [{
    ```mlir
    bad.complete
    ```
  }];
}
