import { randomUUID } from 'node:crypto';
import type { AddressInfo, Socket } from 'node:net';
import type { Api } from './api.ts';
import { serviceAccountUser, type User } from './auth/tokens.ts';
import type { FaultRule, Faults } from './faults.ts';
import { type ApiOptions, makeApi } from './make-api.ts';
import type { KubeObject } from './object.ts';
import { storageKey } from './resources/api-resource.ts';
import { Connections } from './serve/connections.ts';
import type { Control } from './serve/control.ts';
import { makeServer, type ServerOptions } from './serve/server.ts';
import type { Snapshot, Store } from './store.ts';

/** How the server is to be. Every field may be absent. */
export type KubeApiOptions = ApiOptions & {
  /** Port to listen on; 0, the default, takes a free one. */
  readonly port?: number;
  /** Address to listen on; the default is 127.0.0.1. */
  readonly host?: string;
  readonly tls?: ServerOptions['tls'];
  /** 'rbac': every request needs a token, and the roles in the store decide. Default: everyone may do everything. */
  readonly authorization?: 'all' | 'rbac';
};

/** A running API server. */
export type KubeApi = {
  readonly url: string;
  readonly api: Api;
  readonly store: Store;
  readonly faults: Faults;
  /** Accepts a token for a ServiceAccount or user; returns the token. */
  readonly addToken: (user: User | { readonly namespace: string; readonly serviceAccount: string }) => string;
  readonly revokeToken: (token: string) => void;
  readonly disconnectWatches: () => void;
  /** Goes back to an older state, as when etcd is restored from a backup: all connections break. */
  readonly restore: (snapshot: Snapshot) => void;
  /** Refuses and breaks all connections until `heal` is called. */
  readonly partition: () => { readonly heal: () => void };
  /** Reads all objects of a resource from the store, past all faults. */
  readonly objects: (plural: string, group?: string) => readonly KubeObject[];
  /** Serves a connection that was accepted elsewhere: at an address in another network namespace. */
  readonly accept: (socket: Socket) => void;
  readonly close: () => Promise<void>;
};

/** Starts an API server in this process. Owns a port until `close`. */
export async function startKubeApi(options: KubeApiOptions = {}): Promise<KubeApi> {
  const api = makeApi(options);
  const { store, faults, tokens } = api;
  const connections = new Connections();
  const partition = () => cut(faults, connections);
  const restore = (snapshot: Snapshot) => {
    store.restore(snapshot);
    connections.destroyAll();
  };
  const addToken: KubeApi['addToken'] = (user) => {
    const token = `token-${randomUUID()}`;
    tokens.add(token, 'username' in user ? user : serviceAccountUser(user.namespace, user.serviceAccount));
    return token;
  };
  const control = switches(store, faults, connections, restore);
  const authorizes = options.authorization === 'rbac';
  const tls = options.tls === undefined ? {} : { tls: options.tls };
  const server = makeServer(api, control, connections, { authorizes, ...tls });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port ?? 0, options.host ?? '127.0.0.1', resolve);
  });
  // A TCP server has an address with a port.
  const { port } = server.address() as AddressInfo;
  return {
    url: `${options.tls === undefined ? 'http' : 'https'}://${options.host ?? '127.0.0.1'}:${port}`,
    api,
    store,
    faults,
    addToken,
    revokeToken: (token) => tokens.revoke(token),
    disconnectWatches: () => connections.disconnectWatches(),
    restore,
    partition,
    objects: (plural, group = '') => store.list(storageKey({ group, plural })),
    accept: (socket) => void server.emit('connection', socket),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        connections.destroyAll();
      }),
  };
}

function cut(faults: Faults, connections: Connections): { readonly heal: () => void } {
  const heal = faults.add({ action: { kind: 'drop-before' } });
  connections.destroyAll();
  return { heal };
}

function switches(
  store: Store,
  faults: Faults,
  connections: Connections,
  restore: (snapshot: Snapshot) => void,
): Control {
  const snapshots = new Map<string, Snapshot>();
  return {
    // The body of a POST is what its sender says; a rule without an action does nothing.
    fault: (body) => void faults.add(body as unknown as FaultRule),
    'clear-faults': () => faults.clear(),
    compact: () => store.compact(),
    'disconnect-watches': () => connections.disconnectWatches(),
    snapshot: ({ name }) => void snapshots.set(String(name), store.snapshot()),
    restore: ({ name }) => {
      const found = snapshots.get(String(name));
      if (found !== undefined) setImmediate(() => restore(found));
      return { restored: found !== undefined };
    },
  };
}
