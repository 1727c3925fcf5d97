func.func private @f(!quant.uniform<i8:f32, 1.0>)
// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = "quant.qcast"(%x) : (tensor<4xf32>) -> tensor<4xi8>
  return
}
// -----
func.func @f(%x: tensor<4xf32>) {
  %0 = tosa.abs %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}
