import { Agent as HttpAgent, type OutgoingHttpHeaders } from 'node:http';
import { Agent as HttpsAgent, type RequestOptions } from 'node:https';
import type { Cluster, User } from '@kubernetes/client-node/dist/config_types.js';
import { ExecAuth } from '@kubernetes/client-node/dist/exec_auth.js';
import type { Clock } from '../runtime/clock.ts';
import { ConfigError } from '../runtime/decode.ts';
import { recordOf } from '../runtime/json.ts';
import { readRegularFile, readRegularText } from '../runtime/read-regular-file.ts';
import type { AccessTarget } from './access-target.ts';

/** What one request needs to be authenticated. */
type Credentials = { readonly agent: HttpAgent; readonly headers: Readonly<Record<string, string>> };

/** Access to one API server: connections and credentials. Credentials are read again as they rotate. */
export type Access = {
  /** URL without a trailing slash; may contain a path. */
  readonly server: string;
  /** Returns what the next request needs. @throws when a file is missing or an exec plugin fails */
  credentials(): Promise<Credentials>;
  /** Drops tokens and certificates, so that they are read again: the server has rejected them. */
  renew(): void;
  /** Closes idle connections. When one connection hung, others to the same server often hang too. */
  dropIdle(): void;
  close(): void;
};

/** Age at which files are read again, as in client-go: certificates and authorities rotate in place. */
const REREAD_MS = 60_000;

/** Interval of TCP keep-alive probes: the kernel detects a dead peer even while no request waits for an answer. */
const KEEP_ALIVE_PROBE_MS = 30_000;

/**
 * Idle connections that are kept. Only a program with as many calls at once has them; with four, ipamd made a new one, and a TLS
 * handshake, for one write in three while nodes join.
 */
const MAX_IDLE = 32;

/** The part of client-node's KubeConfig that is used. */
export type KubeConfigClass = new () => {
  loadFromClusterAndUser(cluster: Cluster, user: User): void;
  applyToHTTPSOptions(options: RequestOptions): Promise<void>;
};

/** Loads the full KubeConfig class of client-node. */
export type LoadKubeConfig = () => Promise<KubeConfigClass>;

/**
 * Opens access to an API server. Owns connections until `close`.
 *
 * It uses client-node's readers of a kubeconfig and its authenticators, imported one by one. The full KubeConfig class
 * would bring generated classes of all kinds and its own HTTP client: 25 MiB of resident memory in the agent on each
 * node, only to read a token file (numbers in docs/kube.md). So the class comes by `loadKubeConfig`, from executables
 * that may meet what only it supports: a proxy, OIDC, Azure, Google.
 * @throws ConfigError when the full class is needed and `loadKubeConfig` is absent
 */
export function openAccess(target: AccessTarget, clock: Clock, loadKubeConfig?: LoadKubeConfig): Access {
  const { cluster, user } = target;
  const newSignIn = signInOf(target, loadKubeConfig);
  let agent: { readonly key: string; readonly agent: HttpAgent } | undefined;
  let known: { readonly options: RequestOptions; readonly readMs: number } | undefined;
  let signIn = newSignIn();
  const read = async (): Promise<RequestOptions> => {
    const isFresh = known !== undefined && clock.monotonicMs() - known.readMs < REREAD_MS;
    const base = isFresh && known !== undefined ? known.options : tlsOptions(cluster, user);
    if (!isFresh) {
      known = { options: base, readMs: clock.monotonicMs() };
      if (tokenFileOf(user) !== undefined) signIn = newSignIn();
    }
    const options: RequestOptions = { ...base, headers: {} };
    await signIn(options);
    return options;
  };
  const agentFor = (options: RequestOptions): HttpAgent => {
    if (options.agent instanceof HttpAgent) return options.agent;
    const { ca, cert, key, servername, rejectUnauthorized } = options;
    const tlsKey = JSON.stringify([ca, cert, key, servername, rejectUnauthorized].map((one) => String(one ?? '')));
    if (agent?.key === tlsKey) return agent.agent;
    // Running requests keep the old agent; its idle connections are closed.
    if (agent !== undefined) closeIdle(agent.agent);
    const settings = { keepAlive: true, keepAliveMsecs: KEEP_ALIVE_PROBE_MS, maxFreeSockets: MAX_IDLE };
    const tls = withoutUndefined({ ca, cert, key, servername, rejectUnauthorized });
    const isPlain = cluster.server.startsWith('http:');
    agent = { key: tlsKey, agent: isPlain ? new HttpAgent(settings) : new HttpsAgent({ ...settings, ...tls }) };
    return agent.agent;
  };
  return {
    server: cluster.server,
    credentials: async () => {
      const options = await read();
      return { agent: agentFor(options), headers: { ...basic(user), ...plainHeaders(options.headers) } };
    },
    renew: () => {
      known = undefined;
      signIn = newSignIn();
    },
    dropIdle: () => {
      if (agent !== undefined) closeIdle(agent.agent);
    },
    close: () => agent?.agent.destroy(),
  };
}

type SignIn = (options: RequestOptions) => Promise<void>;

function signInOf(target: AccessTarget, loadKubeConfig: LoadKubeConfig | undefined): () => SignIn {
  if (!needsFullConfig(target)) return () => authenticate(target.user);
  if (loadKubeConfig !== undefined) return () => authenticateByFullConfig(target, loadKubeConfig);
  const got = target.cluster.proxyUrl ? 'a proxy' : `auth-provider ${String(target.user.authProvider?.name)}`;
  const expected = 'a token, tokenFile, client certificate or exec plugin, and no proxy-url, in this executable';
  throw new ConfigError('kubeconfig', [{ path: '', expected, got }]);
}

function needsFullConfig({ cluster, user }: AccessTarget): boolean {
  if (cluster.proxyUrl) return true;
  return Boolean(user.authProvider) && tokenFileOf(user) === undefined && !new ExecAuth().isAuthProvider(user);
}

/** Authenticates with a token from a file, or with client-node's exec plugin. A new one has not read any token yet. */
function authenticate(user: User): SignIn {
  const exec = new ExecAuth();
  const found = exec.isAuthProvider(user) ? exec : undefined;
  const token = found === undefined ? openTokenFile(user) : undefined;
  return async (options) => {
    const headers: OutgoingHttpHeaders = {};
    options.headers = headers;
    if (user.impersonateUser) headers['Impersonate-User'] = user.impersonateUser;
    await found?.applyAuthentication(user, options);
    if (token !== undefined) headers['Authorization'] = `Bearer ${token()}`;
    if (user.token) headers['Authorization'] = `Bearer ${user.token}`;
  };
}

function authenticateByFullConfig({ cluster, user }: AccessTarget, load: LoadKubeConfig): SignIn {
  // Its own readers of files may block. The request has the certificates already (`tlsOptions`); the token follows.
  const { caFile: _caFile, ...fileless } = cluster;
  const { certFile: _certFile, keyFile: _keyFile, authProvider, ...named } = user;
  const token = openTokenFile(user);
  const loaded = load().then((KubeConfig) => {
    const config = new KubeConfig();
    config.loadFromClusterAndUser(fileless, token === undefined ? { ...named, authProvider } : named);
    return config;
  });
  // The first caller gets the failure. There may be no caller before the process ends, so mark the rejection as
  // handled.
  loaded.catch(() => {});
  return async (options) => {
    await (await loaded).applyToHTTPSOptions(options);
    if (token !== undefined) options.headers = { ...plainHeaders(options.headers), Authorization: `Bearer ${token()}` };
  };
}

function tokenFileOf({ authProvider }: User): string | undefined {
  const config: unknown = recordOf(authProvider)['config'];
  const path = recordOf(config)['tokenFile'];
  return typeof path === 'string' && path !== '' ? path : undefined;
}

/** Returns what reads the token of a user's file, once; undefined for a user without such a file. */
function openTokenFile(user: User): (() => string) | undefined {
  const path = tokenFileOf(user);
  if (path === undefined) return undefined;
  let token: string | undefined;
  return () => {
    token ??= readRegularText(path, MAX_FILE_BYTES).trim();
    return token;
  };
}

function tlsOptions(cluster: Cluster, user: User): RequestOptions {
  return withoutUndefined({
    ca: fileOrText(cluster.caFile, cluster.caData),
    cert: fileOrText(user.certFile, user.certData),
    key: fileOrText(user.keyFile, user.keyData),
    servername: cluster.tlsServerName || undefined,
    rejectUnauthorized: cluster.skipTLSVerify ? false : undefined,
  });
}

/** Largest certificate, key or token that is read, bytes. */
const MAX_FILE_BYTES = 1024 * 1024;

function fileOrText(path: string | undefined, base64: string | undefined): Buffer | undefined {
  if (path) return readRegularFile(path, MAX_FILE_BYTES);
  return base64 ? Buffer.from(base64, 'base64') : undefined;
}

function basic({ username, password }: User): Readonly<Record<string, string>> {
  if (!username) return {};
  return { Authorization: `Basic ${Buffer.from(`${username}:${password ?? ''}`).toString('base64')}` };
}

/** Converts headers to plain texts. A token file may end with a line feed, which a header must not contain. */
function plainHeaders(headers: RequestOptions['headers']): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, String(value).trim()]));
}

function closeIdle(agent: HttpAgent): void {
  for (const sockets of Object.values(agent.freeSockets)) for (const socket of sockets ?? []) socket.destroy();
}

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(record: T): Defined<T> {
  // Exactly the entries that are not undefined, as the type states.
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>;
}
