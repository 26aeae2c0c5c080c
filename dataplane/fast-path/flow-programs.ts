import { assemble, type SourceLine } from '../../bpf/assemble.ts';
import { isBpfError } from '../../bpf/bpf-error.ts';
import { type BpfMap, createMap, type MapShape, openMap } from '../../bpf/bpf-map.ts';
import { type BpfProgram, loadProgram, openProgram } from '../../bpf/bpf-program.ts';
import { FLOW_PROGRAM_NAME } from '../numbers.ts';
import { FAST_PROGRAM } from './fast-program.ts';
import { decodeFlow, EPOCH, FLOWS_4, FLOWS_6, type Flow } from './flow-layout.ts';
import { LEARN_PROGRAM } from './learn-program.ts';

/** One loaded program: what cls_bpf needs, and what a dump of filters shows of it (TCA_BPF_ID, TCA_BPF_NAME). */
type LoadedProgram = { readonly fd: number; readonly id: number; readonly name: string };

/** Identifiers of the two programs that are attached to some link. */
type AttachedPrograms = { readonly fastId: number; readonly learnId: number };

/** The loaded programs of one network namespace's fast path, with their maps. The owner must close it. */
export type FlowPrograms = Disposable & {
  /** For the ingress of ENIs and Pods' links. */
  readonly fast: LoadedProgram;
  /** For the egress of the same links. */
  readonly learn: LoadedProgram;
  /** True when programs that were attached already are used on, with the flows that they learned. */
  readonly isReused: boolean;
  /** Ends every learned flow at once: the next packet of each takes the slow path. Idempotent. @throws BpfError */
  forgetFlows(): void;
  /** The number of times that flows were ended, since the maps were made; it starts anew after 2^32. @throws BpfError */
  epoch(): number;
  /** Lists the flows that are followed now: of this epoch, and whose time is not over. @throws BpfError */
  flows(): readonly Flow[];
  /** Closes the descriptors. What is attached goes on. Idempotent. */
  close(): void;
};

/** The two programs may be used under the MIT licence or the GPL: bpf_check_mtu() is for such programs only. */
const LICENSE = 'Dual MIT/GPL';

type Maps = { readonly flows4: BpfMap; readonly flows6: BpfMap; readonly epoch: BpfMap };

/**
 * Loads the two programs, or uses those on that are attached, if their instructions are the same.
 * @param attached of the links that have both already, as after a restart
 * @throws BpfError
 */
export function openFlowPrograms(attached?: AttachedPrograms): FlowPrograms {
  const fresh = loadFresh();
  const reused = attached === undefined ? undefined : reuse(attached, fresh);
  if (reused === undefined) return fresh.programs;
  fresh.programs.close();
  return reused;
}

type Fresh = { readonly programs: FlowPrograms; readonly tags: Readonly<Record<'fast' | 'learn', string>> };

function loadFresh(): Fresh {
  const opened: Disposable[] = [];
  const keep = <T extends Disposable>(item: T): T => {
    opened.push(item);
    return item;
  };
  try {
    const maps: Maps = {
      flows4: keep(createMap(FLOWS_4)),
      flows6: keep(createMap(FLOWS_6)),
      epoch: keep(createMap(EPOCH)),
    };
    const fds = { flows4: maps.flows4.fd, flows6: maps.flows6.fd, epoch: maps.epoch.fd };
    const load = (name: string, source: readonly SourceLine[]) =>
      keep(loadProgram(name, assemble(source, fds), LICENSE));
    const fast = load(FLOW_PROGRAM_NAME.fast, FAST_PROGRAM);
    const learn = load(FLOW_PROGRAM_NAME.learn, LEARN_PROGRAM);
    return {
      programs: join(fast, learn, maps, false),
      tags: { fast: fast.info.tag, learn: learn.info.tag },
    };
  } catch (error) {
    closeAll(opened);
    throw error;
  }
}

/** Opens attached programs with their maps; undefined when they are gone, or when they or their maps are not as ours now. */
function reuse({ fastId, learnId }: AttachedPrograms, { tags }: Fresh): FlowPrograms | undefined {
  const opened: Disposable[] = [];
  const keep = <T extends Disposable>(item: T): T => {
    opened.push(item);
    return item;
  };
  try {
    const fast = keep(openProgram(fastId));
    const learn = keep(openProgram(learnId));
    const mapOf = (shape: MapShape): BpfMap | undefined => {
      for (const id of fast.info.mapIds.filter((each) => learn.info.mapIds.includes(each))) {
        const map = openMap(id, shape);
        if (map !== undefined) return keep(map);
      }
      return undefined;
    };
    const [flows4, flows6, epoch] = [mapOf(FLOWS_4), mapOf(FLOWS_6), mapOf(EPOCH)];
    const isSame = fast.info.tag === tags.fast && learn.info.tag === tags.learn;
    if (isSame && flows4 !== undefined && flows6 !== undefined && epoch !== undefined) {
      return join(fast, learn, { flows4, flows6, epoch }, true);
    }
  } catch (error) {
    // Gone since it was listed, or this process may not open programs by their number: the new ones are attached instead.
    if (!isBpfError(error, 'ENOENT', 'EPERM')) {
      closeAll(opened);
      throw error;
    }
  }
  closeAll(opened);
  return undefined;
}

function join(fast: BpfProgram, learn: BpfProgram, maps: Maps, isReused: boolean): FlowPrograms {
  const first = new Uint8Array(EPOCH.keyBytes);
  const readEpoch = () => {
    const value = maps.epoch.lookup(first) ?? new Uint8Array(EPOCH.valueBytes);
    return new DataView(value.buffer, value.byteOffset).getUint32(0, true);
  };
  let known = readEpoch();
  const close = () => closeAll([fast, learn, maps.flows4, maps.flows6, maps.epoch]);
  return {
    fast: { fd: fast.fd, id: fast.info.id, name: fast.info.name },
    learn: { fd: learn.fd, id: learn.info.id, name: learn.info.name },
    isReused,
    forgetFlows: () => {
      const next = (known + 1) >>> 0;
      maps.epoch.update(first, new Uint8Array(Uint32Array.of(next).buffer));
      known = next;
    },
    epoch: readEpoch,
    flows: () => {
      const epoch = readEpoch();
      // CLOCK_MONOTONIC, as the programs' clock.
      const nowNs = process.hrtime.bigint();
      return [
        ...maps.flows4.entries().map((entry) => decodeFlow(4, entry)),
        ...maps.flows6.entries().map((entry) => decodeFlow(6, entry)),
      ].filter((flow) => flow.epoch === epoch && flow.expiryNs >= nowNs);
    },
    close,
    [Symbol.dispose]: close,
  };
}

function closeAll(items: readonly Disposable[]): void {
  for (const item of items) item[Symbol.dispose]();
}
