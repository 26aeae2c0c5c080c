import { isBpfError } from '../../bpf/bpf-error.ts';
import { type BpfMap, createMap, type MapShape, openMap } from '../../bpf/bpf-map.ts';
import { openProgram } from '../../bpf/bpf-program.ts';
import { ARRIVALS, decodeFlow, EPOCH, FLOWS_4, FLOWS_6, type Flow } from './flow-layout.ts';

/** The maps that the two programs of the fast path share. The owner must close them. */
export class FlowMaps implements Disposable {
  readonly flows4: BpfMap;
  readonly flows6: BpfMap;
  readonly epoch: BpfMap;
  readonly arrivals: BpfMap;

  private constructor(open: (shape: MapShape) => BpfMap) {
    const opened: BpfMap[] = [];
    const keep = (shape: MapShape): BpfMap => {
      const map = open(shape);
      opened.push(map);
      return map;
    };
    try {
      [this.flows4, this.flows6, this.epoch, this.arrivals] = [
        keep(FLOWS_4),
        keep(FLOWS_6),
        keep(EPOCH),
        keep(ARRIVALS),
      ];
    } catch (error) {
      for (const map of opened) map.close();
      throw error;
    }
  }

  /** Makes empty maps. @throws BpfError */
  static create(): FlowMaps {
    return new FlowMaps(createMap);
  }

  /** Opens maps that exist. @param ids those of a loaded program @throws BpfError, FlowMapError */
  static open(ids: readonly number[]): FlowMaps {
    return new FlowMaps((shape) => {
      for (const id of ids) {
        const map = openMap(id, shape);
        if (map !== undefined) return map;
      }
      throw new FlowMapError(`the program has no map ${shape.name} as this release makes it`, 'OTHER_SHAPE');
    });
  }

  /** The number of times that flows were ended, since the maps were made; it starts again after 2^32. @throws BpfError */
  readEpoch(): number {
    const value = this.epoch.lookup(FIRST) ?? new Uint8Array(EPOCH.valueBytes);
    return new DataView(value.buffer, value.byteOffset).getUint32(0, true);
  }

  /** Ends all flows that have another epoch. @throws BpfError */
  writeEpoch(epoch: number): void {
    this.epoch.update(FIRST, new Uint8Array(Uint32Array.of(epoch).buffer));
  }

  /** Lists the flows that are followed now: of this epoch, and whose time is not over. @throws BpfError */
  list(): readonly Flow[] {
    const epoch = this.readEpoch();
    // CLOCK_MONOTONIC, as the programs' clock.
    const nowNs = process.hrtime.bigint();
    return [
      ...this.flows4.entries().map((entry) => decodeFlow(4, entry)),
      ...this.flows6.entries().map((entry) => decodeFlow(6, entry)),
    ].filter((flow) => flow.epoch === epoch && flow.expiryNs >= nowNs);
  }

  /** Closes the descriptors. Idempotent. */
  [Symbol.dispose](): void {
    for (const map of [this.flows4, this.flows6, this.epoch, this.arrivals]) map.close();
  }
}

/**
 * Flows that cannot be read. OTHER_SHAPE: the program has no such maps, so it is of another release of ours; else the code
 * of bpf(2): ENOENT when the program is gone, EPERM without CAP_SYS_ADMIN.
 */
export class FlowMapError extends Error {
  override readonly name = 'FlowMapError';
  readonly code: string;

  constructor(message: string, code: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Key of the only entry of an array. */
const FIRST = new Uint8Array(EPOCH.keyBytes);

/**
 * Lists the flows that a program follows which is attached to some link, in another process too. It needs CAP_SYS_ADMIN.
 * @param programId identifier of one of the two programs of the fast path
 * @throws FlowMapError
 */
export function readFlows(programId: number): readonly Flow[] {
  try {
    using program = openProgram(programId);
    using maps = FlowMaps.open(program.info.mapIds);
    return maps.list();
  } catch (error) {
    if (isBpfError(error)) throw new FlowMapError(error.message, error.code, { cause: error });
    throw error;
  }
}
