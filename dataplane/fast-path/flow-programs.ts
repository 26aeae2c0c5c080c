import { assemble, type SourceLine } from '../../bpf/assemble.ts';
import { isBpfError } from '../../bpf/bpf-error.ts';
import { type BpfProgram, loadProgram, openProgram } from '../../bpf/bpf-program.ts';
import { FLOW_PROGRAM_NAME } from '../numbers.ts';
import { FAST_PROGRAM } from './fast-program.ts';
import type { Flow } from './flow-layout.ts';
import { FlowMapError, FlowMaps } from './flow-maps.ts';
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
  /** The number of times that flows were ended, since the maps were made; it starts again after 2^32. @throws BpfError */
  epoch(): number;
  /** Lists the flows that are followed now: of this epoch, and whose time is not over. @throws BpfError */
  flows(): readonly Flow[];
  /** Closes the descriptors. What is attached goes on. Idempotent. */
  close(): void;
};

/** The two programs may be used under the MIT licence or the GPL: bpf_check_mtu() is for such programs only. */
const LICENSE = 'Dual MIT/GPL';

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
    const maps = keep(FlowMaps.create());
    const fds = { flows4: maps.flows4.fd, flows6: maps.flows6.fd, epoch: maps.epoch.fd, arrivals: maps.arrivals.fd };
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
    if (fast.info.tag === tags.fast && learn.info.tag === tags.learn) {
      const maps = keep(FlowMaps.open(fast.info.mapIds.filter((each) => learn.info.mapIds.includes(each))));
      return join(fast, learn, maps, true);
    }
  } catch (error) {
    // Gone since it was listed, of another release, or this process may not open programs by their number: the new ones
    // are attached instead.
    if (!(error instanceof FlowMapError) && !isBpfError(error, 'ENOENT', 'EPERM')) {
      closeAll(opened);
      throw error;
    }
  }
  closeAll(opened);
  return undefined;
}

function join(fast: BpfProgram, learn: BpfProgram, maps: FlowMaps, isReused: boolean): FlowPrograms {
  const close = () => closeAll([fast, learn, maps]);
  return {
    fast: { fd: fast.fd, id: fast.info.id, name: fast.info.name },
    learn: { fd: learn.fd, id: learn.info.id, name: learn.info.name },
    isReused,
    // Read each time: another process that has the same maps, as an agent that is about to end, may have ended flows too.
    forgetFlows: () => maps.writeEpoch((maps.readEpoch() + 1) >>> 0),
    epoch: () => maps.readEpoch(),
    flows: () => maps.list(),
    close,
    [Symbol.dispose]: close,
  };
}

function closeAll(items: readonly Disposable[]): void {
  for (const item of items) item[Symbol.dispose]();
}
