// The signatures of a model as the step form reads them: tensor names, types, shapes, an example.
import { useFetch } from "../api.js";

const TEXT = new Set(["string"]);
const MOST_ELEMENTS = 4096; // a larger example is not worth reading

/** "DT_FLOAT" → "float32"; other names are numpy's already, but for the prefix. */
function typeName(name) {
  const plain = String(name).replace(/^DT_/, "").toLowerCase();
  return { float: "float32", double: "float64", half: "float16" }[plain] ?? plain;
}

function dimensions(shape) {
  return shape?.unknown_rank ? null : (shape?.dim ?? []).map((dim) => Number(dim.size));
}

/** A value of that type and shape as JSON; dimensions that are not known are 1. */
export function exampleText(dtype, shape) {
  const dims = (shape ?? []).map((dim) => (dim >= 0 ? dim : 1));
  if (dims.reduce((product, dim) => product * dim, 1) > MOST_ELEMENTS) return "";
  const element = TEXT.has(dtype) ? "" : dtype === "bool" ? false : dtype.startsWith("complex") ? [0, 0] : 0;
  const value = dims.reduceRight((inner, dim) => Array(dim).fill(inner), element);
  return JSON.stringify(value);
}

function tensors(entries) {
  return Object.entries(entries ?? {}).map(([name, info]) => {
    const dtype = typeName(info.dtype);
    const shape = dimensions(info.tensor_shape);
    return { name, tensor: info.name, dtype, shape, example: exampleText(dtype, shape) };
  });
}

/** The signatures of `…/metadata` that have outputs to fetch, those of serving first. */
export function signaturesOf(metadata) {
  const all = metadata?.metadata?.signature_def?.signature_def ?? {};
  return Object.entries(all)
    .filter(([name]) => !name.startsWith("__"))
    .map(([name, one]) => ({
      name, method: one.method_name, inputs: tensors(one.inputs), outputs: tensors(one.outputs),
    }))
    .sort((a, b) => Number(b.name === "serving_default") - Number(a.name === "serving_default"));
}

/** The state of a fetch of the metadata of {name, version}, or of nothing for null. */
export function useMetadata(model) {
  const version = model?.version ? `/versions/${encodeURIComponent(model.version)}` : "";
  return useFetch(model ? `v1/models/${encodeURIComponent(model.name)}${version}/metadata` : null);
}
