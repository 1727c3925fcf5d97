#include "Frame.h"

#include "llvm/Support/Base64.h"

#include <atomic>

using namespace dither::test;

static std::atomic<int> numErrors{0};

static XLA_FFI_Error *makeError(const std::string &message,
                                XLA_FFI_Error_Code code) {
  ++numErrors;
  return new XLA_FFI_Error{message, code};
}

static XLA_FFI_Error *createError(XLA_FFI_Error_Create_Args *args) {
  return makeError(args->message, args->errc);
}

static void getMessage(XLA_FFI_Error_GetMessage_Args *args) {
  args->message = args->error->message.c_str();
}

static void destroyError(XLA_FFI_Error_Destroy_Args *args) {
  --numErrors;
  delete args->error;
}

static XLA_FFI_Error *getStream(XLA_FFI_Stream_Get_Args *args) {
  if (!args->ctx->failure.empty())
    return makeError(args->ctx->failure, XLA_FFI_Error_Code_UNIMPLEMENTED);
  args->stream = args->ctx->stream;
  return nullptr;
}

static XLA_FFI_Error *getOrdinal(XLA_FFI_DeviceOrdinal_Get_Args *args) {
  args->device_ordinal = args->ctx->ordinal;
  return nullptr;
}

const XLA_FFI_Api *dither::test::xlaApi() {
  static const XLA_FFI_Api api = [] {
    XLA_FFI_Api api = {};
    api.struct_size = XLA_FFI_Api_STRUCT_SIZE;
    api.api_version = {XLA_FFI_Api_Version_STRUCT_SIZE, nullptr,
                       XLA_FFI_API_MAJOR, XLA_FFI_API_MINOR};
    api.XLA_FFI_Error_Create = createError;
    api.XLA_FFI_Error_GetMessage = getMessage;
    api.XLA_FFI_Error_Destroy = destroyError;
    api.XLA_FFI_Stream_Get = getStream;
    api.XLA_FFI_DeviceOrdinal_Get = getOrdinal;
    return api;
  }();
  return &api;
}

int dither::test::numXlaErrors() { return numErrors; }

std::string dither::test::hexDigest(llvm::StringRef bytes) {
  return llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes)),
                     /*LowerCase=*/true);
}

Frame::Frame(XLA_FFI_ExecutionStage stage, const std::string &encoded)
    : Frame(stage) {
  attribute("digest", hexDigest(encoded));
  attribute("program", llvm::encodeBase64(encoded));
}

Frame &Frame::attribute(const std::string &name, const std::string &value) {
  Attribute &added = attributes.emplace_back();
  added.name = name;
  added.value = value;
  added.nameSpan = {added.name.data(), added.name.size()};
  added.valueSpan = {added.value.data(), added.value.size()};
  return *this;
}

void *Frame::add(std::deque<Array> &arrays, void *data,
                 std::vector<int64_t> shape, XLA_FFI_DataType type) {
  Array &added = arrays.emplace_back();
  added.shape = std::move(shape);
  added.buffer = {XLA_FFI_Buffer_STRUCT_SIZE,  nullptr,           type, data,
                  int64_t(added.shape.size()), added.shape.data()};
  return &added.buffer;
}

Frame &Frame::operand(void *data, std::vector<int64_t> shape,
                      XLA_FFI_DataType type) {
  operands.push_back(add(arrays, data, std::move(shape), type));
  return *this;
}

Frame &Frame::result(void *data, std::vector<int64_t> shape,
                     XLA_FFI_DataType type) {
  results.push_back(add(arrays, data, std::move(shape), type));
  return *this;
}

Frame &Frame::on(void *stream, int32_t ordinal) {
  context.stream = stream;
  context.ordinal = ordinal;
  return *this;
}

std::string Frame::call(dither::runtime::XlaHandler *handler) {
  std::vector<XLA_FFI_ArgType> argTypes(operands.size(),
                                        XLA_FFI_ArgType_BUFFER);
  std::vector<XLA_FFI_RetType> retTypes(results.size(), XLA_FFI_RetType_BUFFER);
  std::vector<XLA_FFI_AttrType> attrTypes(attributes.size(),
                                          XLA_FFI_AttrType_STRING);
  std::vector<XLA_FFI_ByteSpan *> names;
  std::vector<void *> values;
  for (Attribute &attribute : attributes) {
    names.push_back(&attribute.nameSpan);
    values.push_back(&attribute.valueSpan);
  }
  XLA_FFI_CallFrame frame = {};
  frame.struct_size = XLA_FFI_CallFrame_STRUCT_SIZE;
  frame.api = xlaApi();
  frame.ctx = &context;
  frame.stage = stage;
  frame.args = {XLA_FFI_Args_STRUCT_SIZE, nullptr, int64_t(operands.size()),
                argTypes.data(), operands.data()};
  frame.rets = {XLA_FFI_Rets_STRUCT_SIZE, nullptr, int64_t(results.size()),
                retTypes.data(), results.data()};
  frame.attrs = {
      XLA_FFI_Attrs_STRUCT_SIZE, nullptr,      int64_t(attributes.size()),
      attrTypes.data(),          names.data(), values.data()};
  XLA_FFI_Error *error = handler(&frame);
  EXPECT_EQ(frame.future, nullptr);
  if (!error)
    return "";
  code = error->code;
  std::string message = error->message;
  XLA_FFI_Error_Destroy_Args destroy = {XLA_FFI_Error_Destroy_Args_STRUCT_SIZE,
                                        nullptr, error};
  destroyError(&destroy);
  return message;
}
