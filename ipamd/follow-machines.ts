import type { Informer } from '../kube/informer.ts';
import { isKubeError } from '../kube/kube-error.ts';
import { MACHINES } from '../kube/resource-types.ts';
import type { MachineEntry } from './nodes/machine-entry.ts';
import { type InformerDeps, openMachines } from './open-informers.ts';

/** Follows Machines where the cluster has them. */
export type MachineFollower = {
  /** Undefined while the cluster has none. */
  readonly informer: Informer<MachineEntry> | undefined;
  /** Looks for Machines now and then, and follows them once there are any. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
};

/** Native nodes may be turned on at any time; nothing waits for it. */
const LOOK_AGAIN_MS = 10 * 60_000;

/** Makes what follows Machines: their definition is there only in clusters with native nodes. */
export function followMachines(deps: InformerDeps): MachineFollower {
  let informer: Informer<MachineEntry> | undefined;
  return {
    get informer() {
      return informer;
    },
    run: async (signal) => {
      while (!signal.aborted) {
        if (await haveMachines(deps, signal)) {
          informer = openMachines(deps);
          return await informer.start(signal);
        }
        await deps.clock.sleep(LOOK_AGAIN_MS, signal).catch(() => {});
      }
    },
  };
}

async function haveMachines({ client, log }: InformerDeps, signal: AbortSignal): Promise<boolean> {
  try {
    await client.listPage(MACHINES, { limit: 1 }, signal);
    return true;
  } catch (error) {
    // An API server that is away may have some: the informer goes on asking.
    if (!isKubeError(error, 'NOT_FOUND', 'FORBIDDEN')) return !signal.aborted;
    if (error.code === 'FORBIDDEN')
      log.warn('Machines may not be read; native nodes are found by providerID alone', { error });
    return false;
  }
}
