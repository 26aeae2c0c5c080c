import { randomUUID } from 'node:crypto';
import { seedOf } from '../support/seed.ts';
import { seededRandom } from '../support/seeded-random.ts';
import type { Api } from './api.ts';
import { Authenticator } from './auth/tokens.ts';
import { Faults } from './faults.ts';
import type { KubeObject } from './object.ts';
import { type ApiResource, groupVersion } from './resources/api-resource.ts';
import { Registry } from './resources/registry.ts';
import { Store } from './store.ts';
import { timestamp } from './verbs/commit.ts';

/** How the core of the server is to be. Every field may be absent. */
export type ApiOptions = {
  /** Whether owned objects and the contents of namespaces go with their owner; default true. */
  readonly collectsGarbage?: boolean;
  readonly bookmarkIntervalMs?: number;
  /** Changes kept of each resource, for watches that come back. */
  readonly historyLimit?: number;
  readonly nowMs?: () => number;
  readonly random?: () => number;
  /** Default: a random one. */
  readonly newUid?: () => string;
  /** Called with each request but watches, in the moment of its effect: for those who watch who does what. */
  readonly onRequest?: Api['onRequest'];
  /** Default: by HTTPS. */
  readonly postToWebhook?: Api['postToWebhook'];
};

const BOOKMARK_INTERVAL_MS = 60_000;
const NAMESPACES = ['default', 'kube-system', 'kube-public', 'kube-node-lease'];

/** Makes what the verbs work on: an empty cluster with the namespaces that every cluster has. */
export function makeApi(options: ApiOptions = {}): Api {
  const random = options.random ?? seededRandom(seedOf('API server'));
  const store = new Store(options.historyLimit);
  const api: Api = {
    store,
    faults: new Faults(random),
    tokens: new Authenticator(),
    random,
    registry: new Registry(store),
    nowMs: options.nowMs ?? Date.now,
    newUid: options.newUid ?? randomUUID,
    bookmarkIntervalMs: options.bookmarkIntervalMs ?? BOOKMARK_INTERVAL_MS,
    collectsGarbage: options.collectsGarbage ?? true,
    onRequest: options.onRequest,
    postToWebhook: options.postToWebhook,
  };
  const namespaces = api.registry.find('', 'v1', 'namespaces');
  for (const name of NAMESPACES)
    if (namespaces !== undefined) store.put('/namespaces', namespaceOf(api, namespaces, name));
  return api;
}

function namespaceOf(api: Api, resource: ApiResource, name: string): KubeObject {
  const metadata = { name, uid: api.newUid(), creationTimestamp: timestamp(api.nowMs()) };
  const bare: KubeObject = { apiVersion: groupVersion(resource), kind: resource.kind, metadata };
  return resource.strategy.prepareCreate?.(bare) ?? bare;
}
