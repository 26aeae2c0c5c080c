import { writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { ADMIN } from '../../../sim/kube-api/auth/tokens.ts';
import { renderKubeconfig } from '../../../sim/kube-api/kubeconfig.ts';
import type { KubeApi } from '../../../sim/kube-api/start-kube-api.ts';
import { isObject } from '../../../sim/support/netns.ts';
import { tryRun } from '../../../sim/support/run.ts';
import { table } from './format.ts';

/** What people see of the cluster. */
export type Kubectl = {
  /** What `kubectl get <what> [-o wide]` prints, below that line. */
  get(what: Listed, options?: { readonly isWide?: boolean; readonly names?: readonly string[] }): Promise<string>;
  close(): void;
};

/** Collections that are shown, by the short name that kubectl takes. */
const PATHS = {
  nodes: '/api/v1/nodes',
  pods: '/api/v1/namespaces/default/pods',
  nec: '/apis/networking.tke.cloud.tencent.com/v1/nodeeniconfigs',
  vip: '/apis/networking.tke.cloud.tencent.com/v1/vpcips',
  vipc: '/apis/networking.tke.cloud.tencent.com/v1/namespaces/default/vpcipclaims',
} as const;

type Listed = keyof typeof PATHS;
type Rows = readonly (readonly string[])[];

/** Opens the way in for people: the machine's kubectl if there is one, else the table that kubectl would be given. */
export async function openKubectl(server: KubeApi, dir: string): Promise<Kubectl> {
  const token = server.addToken(ADMIN);
  const proxy = await startProxy(server.url, token);
  const config = join(dir, 'kubeconfig');
  writeFileSync(config, renderKubeconfig({ url: proxy.url }));
  const env = { PATH: process.env['PATH'] ?? '', HOME: dir, KUBECONFIG: config };
  const hasKubectl = (await tryRun(['kubectl', 'version', '--client'], { env })).code === 0;
  const read = async (what: Listed, isWide: boolean): Promise<Rows> => {
    if (!hasKubectl) return readTable(`${server.url}${PATHS[what]}`, token, isWide);
    const got = await tryRun(['kubectl', 'get', what, ...(isWide ? ['-o', 'wide'] : [])], { env });
    if (got.code !== 0) throw new Error(`kubectl get ${what}: ${got.stderr}`);
    return columnsOf(got.stdout);
  };
  return {
    get: async (what, { isWide = false, names = [] } = {}) => {
      const [header = [], ...rows] = await read(what, isWide);
      const shown = names.length === 0 ? rows : rows.filter(([name = '']) => names.includes(name));
      const command = ['kubectl get', what, ...names, ...(isWide ? ['-o wide'] : [])].join(' ');
      return `  # ${command}\n${table([header, ...shown])}`;
    },
    close: proxy.close,
  };
}

/** Takes apart what kubectl printed: columns begin where their headings begin, and cells may be empty. */
function columnsOf(text: string): Rows {
  const lines = text.split('\n').filter((line) => line !== '');
  const starts = [...(lines[0] ?? '').matchAll(/(?<=^|\s{2,})\S+(?: \S+)*/g)].map(({ index }) => index);
  return lines.map((line) => starts.map((start, column) => line.slice(start, starts[column + 1]).trim()));
}

/** Adds the token to what comes: kubectl sends none by plain HTTP. */
async function startProxy(url: string, token: string): Promise<{ readonly url: string; readonly close: () => void }> {
  const server = createServer((asked, answer) => {
    const { method, headers } = asked;
    const onward = request(`${url}${asked.url}`, {
      ...(method === undefined ? {} : { method }),
      headers: { ...headers, authorization: `Bearer ${token}` },
    });
    onward.on('response', (got) => got.pipe(answer.writeHead(got.statusCode ?? 502, got.headers)));
    onward.on('error', () => answer.destroy());
    asked.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  // A TCP server has an address with a port.
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Asks for a list as kubectl does, for people. @see Table of meta.k8s.io/v1 */
async function readTable(url: string, token: string, isWide: boolean): Promise<Rows> {
  const headers = {
    accept: 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json',
    authorization: `Bearer ${token}`,
  };
  const answer: unknown = await (await fetch(url, { headers })).json();
  const { columnDefinitions = [], rows = [] } = isObject(answer) ? answer : {};
  if (!Array.isArray(columnDefinitions) || !Array.isArray(rows)) throw new Error(`${url}: no table`);
  const columns: readonly unknown[] = columnDefinitions;
  const shown = columns.flatMap((column, index) =>
    isObject(column) && (isWide || !(Number(column['priority']) > 0)) ? [{ index, name: String(column['name']) }] : [],
  );
  const cellsOf = (row: unknown): readonly unknown[] =>
    isObject(row) && Array.isArray(row['cells']) ? row['cells'] : [];
  return [
    shown.map(({ name }) => name.toUpperCase()),
    ...rows.map((row) => shown.map(({ index }) => String(cellsOf(row)[index] ?? ''))),
  ];
}
