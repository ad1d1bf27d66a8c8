"""A GGUF file with the metadata of another, and all of its tensors dequantised to F32.

Usage: python3 dequantised.py MODEL.gguf OUT.gguf
Needs the gguf package. llama.cpp computes F32 tensors with F32 activations, so that OUT.gguf shows
what it says without the rounding of activations that its quantised kernels add.
"""
import sys

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

ALL_F32 = 0


def copy_metadata(reader, writer):
    for field in reader.fields.values():
        name, kind = field.name, field.types[0]
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = ALL_F32 if name == "general.file_type" else field.contents()
        items = field.types[-1] if kind == GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, kind, sub_type=items)


def shape(tensor):
    return [int(size) for size in reversed(tensor.shape)]


def main():
    source, out = sys.argv[1:]
    reader = GGUFReader(source)
    writer = GGUFWriter(out, reader.fields["general.architecture"].contents())
    copy_metadata(reader, writer)
    for tensor in reader.tensors:
        sizes = shape(tensor)
        writer.add_tensor_info(tensor.name, sizes, np.dtype(np.float32), 4 * int(np.prod(sizes)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:
        values = dequantize(tensor.data, tensor.tensor_type).reshape(shape(tensor))
        writer.write_tensor_data(np.ascontiguousarray(values, dtype=np.float32))
    writer.close()


if __name__ == "__main__":
    main()
