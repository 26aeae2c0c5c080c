import type { KubeObject } from '../object.ts';
import type { TableColumn } from '../resources/api-resource.ts';
import { readJsonPath } from './json-path.ts';

/** The first column of every table. */
export const NAME_COLUMN: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  cell: (object) => object.metadata.name,
};

const AGE_COLUMN: TableColumn = {
  name: 'Age',
  type: 'string',
  cell: (object, nowMs) => ageOf(object.metadata.creationTimestamp ?? '', nowMs),
};

/** Says how long ago a moment was, as kubectl shows it: 5s, 3m20s, 4h, 2d. */
export function ageOf(moment: string, nowMs: number): string {
  const seconds = Math.max(0, Math.floor((nowMs - Date.parse(moment)) / 1000));
  if (Number.isNaN(seconds)) return '<unknown>';
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (seconds < 120) return `${seconds}s`;
  if (minutes < 10) return seconds % 60 === 0 ? `${minutes}m` : `${minutes}m${seconds % 60}s`;
  if (minutes < 180) return `${minutes}m`;
  if (hours < 8) return minutes % 60 === 0 ? `${hours}h` : `${hours}h${minutes % 60}m`;
  if (hours < 48) return `${hours}h`;
  return `${Math.floor(hours / 24)}d`;
}

function at(
  name: string,
  jsonPath: string,
  extra: { readonly priority?: number; readonly empty?: string } = {},
): TableColumn {
  const cell = (object: KubeObject) => String(readJsonPath(object, jsonPath)[0] ?? extra.empty ?? '');
  return { name, type: 'string', ...(extra.priority === undefined ? {} : { priority: extra.priority }), cell };
}

function count(object: KubeObject, field: string): number {
  const value = object[field];
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0;
}

function readiness(object: KubeObject): unknown {
  return readJsonPath(object, '.status.conditions[?(@.type=="Ready")].status')[0];
}

const READY_WORDS: Readonly<Record<string, string>> = { True: 'Ready', False: 'NotReady' };

const READY_CONTAINERS: TableColumn = {
  name: 'Ready',
  type: 'string',
  cell: (pod) => {
    const ready = readJsonPath(pod, '.status.containerStatuses[*].ready').filter((one) => one === true).length;
    return `${ready}/${readJsonPath(pod, '.spec.containers[*]').length}`;
  },
};

const POD_STATUS: TableColumn = {
  name: 'Status',
  type: 'string',
  cell: (pod) => {
    if (pod.metadata.deletionTimestamp !== undefined) return 'Terminating';
    return readJsonPath(pod, '.status.reason')[0] ?? readJsonPath(pod, '.status.phase')[0] ?? '';
  },
};

const NODE_STATUS: TableColumn = {
  name: 'Status',
  type: 'string',
  cell: (node) => {
    const held = readJsonPath(node, '.spec.unschedulable')[0] === true ? ',SchedulingDisabled' : '';
    return `${READY_WORDS[String(readiness(node))] ?? 'Unknown'}${held}`;
  },
};

const DATA: TableColumn = { name: 'Data', type: 'string', cell: (object) => count(object, 'data') };
const RESTARTS: TableColumn = {
  name: 'Restarts',
  type: 'string',
  cell: (pod) =>
    String(
      readJsonPath(pod, '.status.containerStatuses[*].restartCount').reduce<number>((sum, one) => sum + Number(one), 0),
    ),
};
const LAST_SEEN: TableColumn = {
  name: 'Last Seen',
  type: 'string',
  cell: (event, nowMs) =>
    ageOf(String(event['lastTimestamp'] ?? event['eventTime'] ?? event.metadata.creationTimestamp), nowMs),
};
const OBJECT: TableColumn = {
  name: 'Object',
  type: 'string',
  cell: (event) =>
    `${String(readJsonPath(event, '.involvedObject.kind')[0] ?? '').toLowerCase()}/${String(readJsonPath(event, '.involvedObject.name')[0] ?? '')}`,
};
const CREATED_AT: TableColumn = {
  name: 'Created At',
  type: 'date',
  cell: (object) => object.metadata.creationTimestamp,
};

const SHOWN_HOSTS = 3;
const HOSTS: TableColumn = {
  name: 'Hosts',
  type: 'string',
  cell: (ingress) => {
    const hosts = readJsonPath(ingress, '.spec.rules[*].host').filter((host) => host !== undefined && host !== '');
    if (hosts.length === 0) return '*';
    const more = hosts.length > SHOWN_HOSTS ? ` + ${hosts.length - SHOWN_HOSTS} more...` : '';
    return `${hosts.slice(0, SHOWN_HOSTS).join(',')}${more}`;
  },
};
const ADDRESS: TableColumn = {
  name: 'Address',
  type: 'string',
  cell: (ingress) =>
    [
      ...readJsonPath(ingress, '.status.loadBalancer.ingress[*].ip'),
      ...readJsonPath(ingress, '.status.loadBalancer.ingress[*].hostname'),
    ].join(','),
};

function hasTls(ingress: KubeObject): boolean {
  return readJsonPath(ingress, '.spec.tls[*]').length > 0;
}

/** The columns of built-in resources, by storage key; `default` for the rest. */
export const BUILT_IN_COLUMNS: Readonly<Record<string, readonly TableColumn[]>> = {
  default: [NAME_COLUMN, AGE_COLUMN],
  '/pods': [
    NAME_COLUMN,
    READY_CONTAINERS,
    POD_STATUS,
    RESTARTS,
    AGE_COLUMN,
    at('IP', '.status.podIP', { priority: 1, empty: '<none>' }),
    at('Node', '.spec.nodeName', { priority: 1, empty: '<none>' }),
    at('Nominated Node', '.status.nominatedNodeName', { priority: 1, empty: '<none>' }),
  ],
  '/nodes': [
    NAME_COLUMN,
    NODE_STATUS,
    { name: 'Roles', type: 'string', cell: () => '<none>' },
    AGE_COLUMN,
    at('Version', '.status.nodeInfo.kubeletVersion'),
    at('Internal-IP', '.status.addresses[?(@.type=="InternalIP")].address', { priority: 1, empty: '<none>' }),
  ],
  'apps/deployments': [
    NAME_COLUMN,
    {
      name: 'Ready',
      type: 'string',
      cell: (object) =>
        `${String(readJsonPath(object, '.status.readyReplicas')[0] ?? 0)}/${String(readJsonPath(object, '.spec.replicas')[0] ?? 1)}`,
    },
    at('Up-to-date', '.status.updatedReplicas', { empty: '0' }),
    at('Available', '.status.availableReplicas', { empty: '0' }),
    AGE_COLUMN,
  ],
  '/namespaces': [NAME_COLUMN, at('Status', '.status.phase'), AGE_COLUMN],
  '/configmaps': [NAME_COLUMN, DATA, AGE_COLUMN],
  '/secrets': [NAME_COLUMN, at('Type', '.type'), DATA, AGE_COLUMN],
  '/events': [LAST_SEEN, at('Type', '.type'), at('Reason', '.reason'), OBJECT, at('Message', '.message')],
  '/services': [
    NAME_COLUMN,
    at('Type', '.spec.type', { empty: 'ClusterIP' }),
    at('Cluster-IP', '.spec.clusterIP', { empty: '<none>' }),
    at('External-IP', '.status.loadBalancer.ingress[0].ip', { empty: '<none>' }),
    AGE_COLUMN,
  ],
  'networking.k8s.io/ingresses': [
    NAME_COLUMN,
    at('Class', '.spec.ingressClassName', { empty: '<none>' }),
    HOSTS,
    ADDRESS,
    { name: 'Ports', type: 'string', cell: (ingress) => (hasTls(ingress) ? '80, 443' : '80') },
    AGE_COLUMN,
  ],
  'networking.k8s.io/ingressclasses': [
    NAME_COLUMN,
    at('Controller', '.spec.controller'),
    at('Parameters', '.spec.parameters.name', { empty: '<none>' }),
    AGE_COLUMN,
  ],
  'coordination.k8s.io/leases': [NAME_COLUMN, at('Holder', '.spec.holderIdentity'), AGE_COLUMN],
  'apiextensions.k8s.io/customresourcedefinitions': [NAME_COLUMN, CREATED_AT],
  'rbac.authorization.k8s.io/clusterroles': [NAME_COLUMN, CREATED_AT],
  'rbac.authorization.k8s.io/roles': [NAME_COLUMN, CREATED_AT],
};
