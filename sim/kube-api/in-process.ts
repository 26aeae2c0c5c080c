import type { KubeClient } from '../../kube/kube-client.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { Api } from './api.ts';
import { ADMIN, type User } from './auth/tokens.ts';
import { Caller } from './in-process/caller.ts';
import { followChanges } from './in-process/follow-changes.ts';
import { WatchHub } from './in-process/watch-hub.ts';
import { type ApiOptions, makeApi } from './make-api.ts';
import type { KubeObject } from './object.ts';
import { storageKey } from './resources/api-resource.ts';
import type { Snapshot } from './store.ts';

/** How an API server without a connection is to be. */
type InProcessOptions = ApiOptions & {
  /** Everything that waits, waits on it: bookmarks, latency, delays and hangs of faults. */
  readonly clock: Clock;
  /**
   * For large runs: objects of our kinds are neither checked, pruned nor filled in by a schema, and requests are not
   * copied, so what a caller hands in is frozen. Everything else is the same.
   */
  readonly isLight?: boolean;
  /** Milliseconds that a request is under way, half of them before its effect; default 0. */
  readonly latencyMs?: number;
  /** Milliseconds after which a request that a fault swallowed fails; default 30,000. */
  readonly requestTimeoutMs?: number;
  /** 'rbac': the roles in the store decide what a client's user may do. Default: everyone may do everything. */
  readonly authorization?: 'all' | 'rbac';
};

/** Who a client is. */
type InProcessClientOptions = {
  /** Default: the administrator. */
  readonly user?: User;
  /** What fault rules know a client by; default `in-process`. */
  readonly userAgent?: string;
};

/** An API server in this process, reached by function calls. */
export type InProcessApi = {
  readonly api: Api;
  /** Makes a client; any number of them. */
  client(options?: InProcessClientOptions): KubeClient;
  /** Breaks every watch, or those of one client. */
  cutWatches(userAgent?: string): void;
  /** Goes back to an older state, as when etcd is restored from a backup: all watches break, unless they are to survive it. */
  restore(snapshot: Snapshot, options?: { readonly keepsWatches?: boolean }): void;
  /** Refuses every request, or those of one client, and breaks its watches, until `heal` is called. */
  partition(userAgent?: string): { readonly heal: () => void };
  /** Reads all objects of a resource from the store, past all faults. */
  objects(plural: string, group?: string): readonly KubeObject[];
};

/** Starts an API server that clients reach by function calls: for virtual clocks and large runs. Owns nothing. */
export function startInProcessApi(options: InProcessOptions): InProcessApi {
  return connectInProcess(makeApi({ nowMs: () => options.clock.nowMs(), ...options }), options);
}

/** Reaches an API server, one that others reach over HTTP too, by function calls. */
export function connectInProcess(api: Api, options: Omit<InProcessOptions, keyof ApiOptions>): InProcessApi {
  const hub = new WatchHub(api, options.clock);
  const caller = new Caller(api, options);
  return {
    api,
    client: (who = {}) => createClient(api, caller, hub, who),
    cutWatches: (userAgent) => hub.cutAll(userAgent),
    restore: (snapshot, { keepsWatches = false } = {}) => {
      api.store.restore(snapshot);
      if (!keepsWatches) hub.cutAll();
    },
    partition: (userAgent) => {
      const about = userAgent === undefined ? {} : { userAgent };
      const heal = api.faults.add({ ...about, action: { kind: 'drop-before' } });
      hub.cutAll(userAgent);
      return { heal };
    },
    objects: (plural, group = '') => api.store.list(storageKey({ group, plural })),
  };
}

/** Makes a client of a server of its own, with everything at its default: where one client is all there is. */
export function createInProcessKube(clock: Clock, options: Omit<InProcessOptions, 'clock'> = {}): KubeClient {
  return startInProcessApi({ clock, ...options }).client();
}

function createClient(api: Api, caller: Caller, hub: WatchHub, options: InProcessClientOptions): KubeClient {
  const who = { user: options.user ?? ADMIN, userAgent: options.userAgent ?? 'in-process' };
  return {
    get: (type, ref, signal) => caller.callOrMiss(who, { verb: 'get', type, ...placeOf(ref) }, signal),
    listPage: (type, { namespace, ...query }, signal) =>
      caller.list(who, { verb: 'list', type, namespace, query }, signal),
    watch: (type, query, signal, onOpen) => followChanges({ api, caller, hub, who, onOpen }, type, query, signal),
    create: (type, object, signal) => {
      const { namespace, name } = object.metadata;
      const at = type.subresource === undefined ? { namespace } : { namespace, name, subresource: type.subresource };
      return caller.call(who, { verb: 'create', type, ...at, body: object }, signal);
    },
    update: (type, object, signal) =>
      caller.call(who, { verb: 'update', type, ...placeOf(object.metadata), body: object }, signal),
    patch: (type, ref, { kind, body, subresource }, signal) => {
      const about = { verb: 'patch', type, ...placeOf(ref), subresource, body, contentType: PATCHES[kind] };
      return caller.call(who, about, signal);
    },
    delete: async (type, ref, preconditions, signal) => {
      const body = preconditions === undefined ? {} : { preconditions };
      const answer = await caller.callOrMiss(who, { verb: 'delete', type, ...placeOf(ref), body }, signal);
      return answer !== undefined;
    },
  };
}

const PATCHES = {
  merge: 'application/merge-patch+json',
  json: 'application/json-patch+json',
  strategic: 'application/strategic-merge-patch+json',
} as const;

function placeOf({ namespace, name }: { readonly namespace?: string; readonly name: string }) {
  return { namespace, name };
}
