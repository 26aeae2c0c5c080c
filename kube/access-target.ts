import { isIPv6 } from 'node:net';
import { dirname, isAbsolute, join } from 'node:path';
import {
  type Cluster,
  newClusters,
  newContexts,
  newUsers,
  type User,
} from '@kubernetes/client-node/dist/config_types.js';
import { ConfigError, type Decoder, isRecord } from '../runtime/decode.ts';
import { listOf, recordOf } from '../runtime/json.ts';
import { readRegularText } from '../runtime/read-regular-file.ts';
import { decodeYaml } from '../runtime/settings/read-yaml.ts';

/** The API server and the user to call it as, in the form of client-node's KubeConfig. */
export type AccessTarget = { readonly cluster: Cluster; readonly user: User };

/** Where the address and the credentials of the API server come from. */
export type AccessSource = {
  /** Path of a kubeconfig. */
  readonly kubeconfig?: string | undefined;
  /** URL of the API server; takes precedence over the one in the kubeconfig. */
  readonly master?: string | undefined;
  readonly context?: string | undefined;
  /** The environment variables. In a Pod they contain the address of the API server. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Folder of a Pod's token and authority; default: the folder where the kubelet puts them. */
  readonly serviceAccountFolder?: string | undefined;
};

/**
 * Reads which API server to call and as which user: from the kubeconfig, a bare URL, or what the kubelet gives every
 * Pod.
 * @throws ConfigError that names the file and what is missing
 */
export function readAccessTarget(source: AccessSource): AccessTarget {
  const { kubeconfig, master } = source;
  const target = kubeconfig === undefined ? withoutFile(source) : fromFile(kubeconfig, source.context);
  return master === undefined ? target : { ...target, cluster: { ...target.cluster, server: serverOf(master) } };
}

const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

function withoutFile({ master, env, serviceAccountFolder = SERVICE_ACCOUNT_FOLDER }: AccessSource): AccessTarget {
  if (master !== undefined) {
    return { cluster: { name: 'master', server: serverOf(master), skipTLSVerify: false }, user: { name: 'nobody' } };
  }
  const host = env['KUBERNETES_SERVICE_HOST'];
  const port = env['KUBERNETES_SERVICE_PORT'];
  if (!host || !port) {
    const expected = 'a kubeconfig, or --master, or the variables KUBERNETES_SERVICE_HOST and _PORT that every Pod has';
    throw fault('settings', '--kubeconfig', expected, undefined);
  }
  return {
    cluster: {
      name: 'in-cluster',
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      caFile: join(serviceAccountFolder, 'ca.crt'),
      skipTLSVerify: false,
    },
    // The kubelet rotates the token in place, so the file is read again and again.
    user: tokenFileUser('in-cluster', join(serviceAccountFolder, 'token')),
  };
}

function fromFile(path: string, context: string | undefined): AccessTarget {
  const content = readConfig(path);
  const name = context ?? content['current-context'];
  const { clusters, users, contexts } = entriesOf(path, content);
  const chosen = contexts.find((one) => one.name === name);
  if (chosen === undefined) {
    const names = contexts.map((one) => one.name).join(', ') || 'none';
    throw fault(path, 'current-context', `the name of one of the contexts; there are ${names}`, name);
  }
  const cluster = clusters.find((one) => one.name === chosen.cluster);
  if (cluster === undefined) throw fault(path, 'clusters', `the cluster of context ${chosen.name}`, chosen.cluster);
  const user = users.find((one) => one.name === chosen.user);
  if (user === undefined && chosen.user) throw fault(path, 'users', `the user of context ${chosen.name}`, chosen.user);
  const absolute = (file: string | undefined) => (file && !isAbsolute(file) ? join(dirname(path), file) : file);
  const tokenFile = tokenFileOf(content, chosen.user);
  const named = user ?? { name: 'nobody' };
  return {
    cluster: withFile(cluster, 'caFile', absolute(cluster.caFile)),
    user: {
      ...withFile(withFile(named, 'certFile', absolute(named.certFile)), 'keyFile', absolute(named.keyFile)),
      ...(tokenFile === undefined ? {} : tokenFileUser(named.name, absolute(tokenFile) ?? tokenFile)),
    },
  };
}

function readConfig(path: string): Readonly<Record<string, unknown>> {
  return decodeYaml(readText(path), path, anyRecord);
}

const anyRecord: Decoder<Readonly<Record<string, unknown>>> = (value, path, faults) => {
  if (isRecord(value)) return value;
  faults.add(path, 'a kubeconfig', value);
  return undefined;
};

/** Largest kubeconfig that is read, bytes: one of a thousand clusters with their certificates has less. */
const MAX_BYTES = 16 * 1024 * 1024;

function readText(path: string): string {
  try {
    return readRegularText(path, MAX_BYTES);
  } catch (error) {
    throw fault(
      'settings',
      '--kubeconfig',
      `a file that can be read, ${path}`,
      error instanceof Error ? error.message : error,
    );
  }
}

function entriesOf(path: string, content: Readonly<Record<string, unknown>>) {
  try {
    return {
      clusters: newClusters(content['clusters']),
      users: newUsers(content['users']),
      contexts: newContexts(content['contexts']),
    };
  } catch (error) {
    throw fault(
      path,
      'clusters, users, contexts',
      'those of a kubeconfig',
      error instanceof Error ? error.message : error,
    );
  }
}

/**
 * Reads `tokenFile` of a user. client-node uses another name for this field than kubectl, and reads the file only once.
 */
function tokenFileOf(content: Readonly<Record<string, unknown>>, userName: string | undefined): string | undefined {
  const users = listOf(content['users']);
  const found = users.find((one) => isRecord(one) && one['name'] === userName);
  const user = recordOf(recordOf(found)['user']);
  return typeof user['tokenFile'] === 'string' ? user['tokenFile'] : undefined;
}

function tokenFileUser(name: string, tokenFile: string): User {
  return { name, authProvider: { name: 'tokenFile', config: { tokenFile } } };
}

function withFile<T extends object, K extends string>(entry: T, key: K, path: string | undefined): T {
  return path === undefined ? entry : { ...entry, [key]: path };
}

function serverOf(master: string): string {
  const url = URL.canParse(master) ? new URL(master) : undefined;
  if (url === undefined || !['http:', 'https:'].includes(url.protocol)) {
    throw fault('settings', '--master', 'a URL: https://10.0.0.1:6443', master);
  }
  return master.replace(/\/$/, '');
}

function fault(source: string, path: string, expected: string, got: unknown): ConfigError {
  return new ConfigError(source, [{ path, expected, got: got === undefined ? 'nothing' : String(got) }]);
}
