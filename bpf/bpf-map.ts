import { BpfAttr, BpfDescriptor, callBpf, readInfo, textAt } from './bpf-call.ts';
import { BpfError } from './bpf-error.ts';
import { ForeignMemory } from './foreign-memory.ts';
import {
  BPF_MAP_CREATE,
  BPF_MAP_GET_FD_BY_ID,
  BPF_MAP_LOOKUP_BATCH,
  BPF_MAP_LOOKUP_ELEM,
  BPF_MAP_TYPE_ARRAY,
  BPF_MAP_TYPE_LRU_HASH,
  BPF_MAP_TYPE_PERCPU_ARRAY,
  BPF_MAP_UPDATE_ELEM,
  BPF_OBJ_NAME_LEN,
} from './uapi/bpf.ts';

/**
 * What a map is made of. `lru-hash`: when it is full the entry that was used least goes. `percpu-array`: each CPU has its own
 * values, and one write here writes those of all. Sizes in bytes.
 */
export type MapShape = {
  readonly type: 'array' | 'percpu-array' | 'lru-hash';
  /** At most 15 letters. */
  readonly name: string;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly maxEntries: number;
};

/** One entry, as bytes. */
export type MapEntry = { readonly key: Uint8Array; readonly value: Uint8Array };

const TYPE = {
  array: BPF_MAP_TYPE_ARRAY,
  'percpu-array': BPF_MAP_TYPE_PERCPU_ARRAY,
  'lru-hash': BPF_MAP_TYPE_LRU_HASH,
} as const;
/** Entries that one call reads. */
const BATCH = 1024;
const MAP_INFO_BYTES = 40;

/** An open map. @see bpf(2) */
export class BpfMap extends BpfDescriptor {
  readonly shape: MapShape;

  constructor(fd: number, shape: MapShape) {
    super(fd);
    this.shape = shape;
  }

  /** Writes the value of a key. @throws BpfError */
  update(key: Uint8Array, value: Uint8Array): void {
    using memory = new ForeignMemory(key.byteLength + value.byteLength + 16);
    this.#call(BPF_MAP_UPDATE_ELEM, memory.put(key), memory.put(value), 'write to');
  }

  /** Reads the value of a key; undefined when it is not there. @throws BpfError */
  lookup(key: Uint8Array): Uint8Array | undefined {
    const { valueBytes } = this.shape;
    using memory = new ForeignMemory(key.byteLength + valueBytes + 16);
    const value = memory.reserve(valueBytes);
    try {
      this.#call(BPF_MAP_LOOKUP_ELEM, memory.put(key), value, 'read');
    } catch (error) {
      if (error instanceof BpfError && error.code === 'ENOENT') return undefined;
      throw error;
    }
    return memory.get(value, valueBytes);
  }

  /**
   * Reads the entries of a hash, at most `maxEntries` of its shape; what changes meanwhile is there or is not. @throws BpfError
   */
  entries(): readonly MapEntry[] {
    const { keyBytes, valueBytes, maxEntries } = this.shape;
    using memory = new ForeignMemory(BATCH * (keyBytes + valueBytes) + 32);
    const [cursor, keys, values] = [
      memory.reserve(8),
      memory.reserve(BATCH * keyBytes),
      memory.reserve(BATCH * valueBytes),
    ];
    const found: MapEntry[] = [];
    let isFirst = true;
    while (found.length < maxEntries) {
      // in_batch, out_batch, keys, values, count, map_fd
      const attr = new BpfAttr(56)
        .u64(0, isFirst ? 0 : cursor)
        .u64(8, cursor)
        .u64(16, keys)
        .u64(24, values);
      attr.u32(32, BATCH, this.fd);
      const isLast = this.#readBatch(attr);
      const count = new DataView(attr.bytes.buffer).getUint32(32, true);
      const [keyed, valued] = [memory.get(keys, BATCH * keyBytes), memory.get(values, BATCH * valueBytes)];
      for (let at = 0; at < count; at++) {
        found.push({
          key: keyed.slice(at * keyBytes, (at + 1) * keyBytes),
          value: valued.slice(at * valueBytes, (at + 1) * valueBytes),
        });
      }
      if (isLast) break;
      isFirst = false;
    }
    return found.slice(0, maxEntries);
  }

  /** Returns true at the end of the map, which the kernel tells by ENOENT. */
  #readBatch(attr: BpfAttr): boolean {
    try {
      callBpf(BPF_MAP_LOOKUP_BATCH, attr, `list the map ${this.shape.name}`);
      return false;
    } catch (error) {
      if (error instanceof BpfError && error.code === 'ENOENT') return true;
      throw error;
    }
  }

  #call(command: number, key: number, value: number, verb: string): void {
    callBpf(command, new BpfAttr(32).u32(0, this.fd).u64(8, key).u64(16, value), `${verb} the map ${this.shape.name}`);
  }
}

/** Makes a map; the kernel charges its memory to the cgroup of this process. @throws BpfError */
export function createMap(shape: MapShape): BpfMap {
  const { type, name, keyBytes, valueBytes, maxEntries } = shape;
  const attr = new BpfAttr(72).u32(0, TYPE[type], keyBytes, valueBytes, maxEntries).name(28, name);
  return new BpfMap(callBpf(BPF_MAP_CREATE, attr, `make the map ${name}`), shape);
}

/** Opens a map that exists; undefined when it has another shape. @throws BpfError ENOENT when it is gone */
export function openMap(id: number, shape: MapShape): BpfMap | undefined {
  const fd = callBpf(BPF_MAP_GET_FD_BY_ID, new BpfAttr(12).u32(0, id), `open the map ${id}`);
  const map = new BpfMap(fd, shape);
  const info = readInfo(fd, MAP_INFO_BYTES);
  const found = [0, 8, 12, 16].map((offset) => info.getUint32(offset, true));
  const wanted = [TYPE[shape.type], shape.keyBytes, shape.valueBytes, shape.maxEntries];
  const isSame = textAt(info, 24, BPF_OBJ_NAME_LEN) === shape.name && found.every((value, at) => value === wanted[at]);
  if (isSame) return map;
  map.close();
  return undefined;
}
