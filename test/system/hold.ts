import { isObject } from '../../sim/support/netns.ts';
import type { RequestMoment } from '../../sim/vpc/api/host.ts';
import type { System } from './system.ts';

/** What requests are held in. */
type Held = Pick<System, 'cloud' | 'logs'>;

/** One request to be caught: the call, and the node that it is for. */
export type HeldCall = { readonly action: string; readonly node: string };

/** Where a request is held, and what becomes of it: it never happens, it happens when let go, or it has happened already. */
export type HoldAt = 'before-lost' | 'before-late' | 'after';

/** Requests that the cloud holds. */
type Hold = {
  /** Calls that are held now, as `action node`. */
  readonly held: ReadonlySet<string>;
  /** Resolves once each call was caught. @throws Error naming those that never came */
  caught(timeoutMs?: number): Promise<void>;
  /** Lets them go: they are lost, or take their effect, as they were to. Everything passes from now on. */
  release(): void;
};

/**
 * Has the cloud hold the first request of each kind that comes for the given nodes, before or after its effect: the
 * moment at which a leader is killed. Others pass.
 */
export function holdCalls(system: Held, calls: readonly HeldCall[], at: HoldAt): Hold {
  const { host } = system.cloud;
  const held = new Set<string>();
  const allHeld = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const wanted = new Set(calls.map(({ action, node }) => `${action} ${node}`));
  host.gate = async (request) => {
    if (request.moment !== (at === 'after' ? 'after' : 'before')) return 'go';
    const key = `${request.action} ${nodeOf(system, request)}`;
    if (!wanted.has(key) || held.has(key)) return 'go';
    held.add(key);
    if (held.size === wanted.size) allHeld.resolve();
    await released.promise;
    return at === 'before-late' ? 'go' : 'lose';
  };
  return {
    held,
    caught: (timeoutMs = 30_000) => {
      const missing = () => [...wanted].filter((key) => !held.has(key)).join(', ');
      const late = setTimeout(
        () => allHeld.reject(new Error(`never called: ${missing()}\n${system.logs().slice(-6_000)}`)),
        timeoutMs,
      );
      return allHeld.promise.finally(() => clearTimeout(late));
    },
    release: () => {
      host.gate = undefined;
      released.resolve();
    },
  };
}

/** The node that a request is for: an ENI's tag says so, or the request's own where the ENI is only made. */
function nodeOf(system: Held, { action, params }: RequestMoment): string {
  const tags = Array.isArray(params['Tags']) ? params['Tags'].filter(isObject) : [];
  const own = tags.find((tag) => tag['Key'] === 'tke-node')?.['Value'];
  if (typeof own === 'string') return own;
  const eniId = params['NetworkInterfaceId'];
  const eni = typeof eniId === 'string' ? system.cloud.host.model.state.enis.get(eniId) : undefined;
  // After its effect a deleted ENI has no tags any more; while its task runs it has.
  return eni?.tags['tke-node'] ?? `nobody (${action})`;
}
