import { isObject, type JsonObject, NetnsView } from '../../sim/support/netns.ts';

/** The inside of one Pod's network namespace, told by iproute2. */
export type PodFacts = {
  readonly path: string;
  /** False when the namespace is gone. */
  readonly isThere: boolean;
  readonly links: readonly {
    readonly ifname: string;
    readonly mac: string;
    readonly isUp: boolean;
    readonly mtu: number;
  }[];
  /** `eth0 10.0.1.5/32`, of global scope only. */
  readonly addresses: readonly string[];
  /** `default via 169.254.1.1 dev eth0`; IPv6 defaults say `default6`. */
  readonly routes: readonly string[];
  /** `169.254.1.1 dev eth0 lladdr 0a:58:00:00:00:01`, permanent ones only. */
  readonly neighs: readonly string[];
};

const SEPARATOR = '----';
const COMMANDS = ['ip -j -d address', 'ip -j -4 route', 'ip -j -6 route', 'ip -j neigh show nud permanent'] as const;

/** Reads a Pod's namespace; one that is gone is told, not thrown. */
export async function readPodFacts(path: string): Promise<PodFacts> {
  const script = COMMANDS.map((command) => `${command}; echo; echo ${SEPARATOR}\n`).join('');
  const { code, stdout } = await new NetnsView(path, path).tryRun(['sh'], { input: script });
  if (code !== 0) return { path, isThere: false, links: [], addresses: [], routes: [], neighs: [] };
  const [links = [], routes4 = [], routes6 = [], neighs = []] = stdout.split(`${SEPARATOR}\n`).map(parseList);
  return {
    path,
    isThere: true,
    links: links.map((link) => ({
      ifname: String(link['ifname']),
      mac: String(link['address'] ?? ''),
      isUp: Array.isArray(link['flags']) && link['flags'].includes('UP'),
      mtu: Number(link['mtu']),
    })),
    addresses: links.flatMap(globalAddresses),
    routes: [...routes4.map((route) => routeLine(route, '')), ...routes6.map((route) => routeLine(route, '6'))],
    neighs: neighs.map((neigh) => `${neigh['dst']} dev ${neigh['dev']} lladdr ${neigh['lladdr']}`),
  };
}

function globalAddresses(link: JsonObject): readonly string[] {
  const infos = Array.isArray(link['addr_info']) ? link['addr_info'].filter(isObject) : [];
  return infos
    .filter((info) => info['scope'] === 'global')
    .map((info) => `${String(link['ifname'])} ${String(info['local'])}/${String(info['prefixlen'])}`);
}

function routeLine(route: JsonObject, suffix: '' | '6'): string {
  const dst = route['dst'] === 'default' ? `default${suffix}` : String(route['dst']);
  const via = route['gateway'] === undefined ? '' : ` via ${String(route['gateway'])}`;
  return `${dst}${via} dev ${String(route['dev'])}`;
}

function parseList(text: string): readonly JsonObject[] {
  const answer: unknown = text.trim() === '' ? [] : JSON.parse(text);
  return Array.isArray(answer) ? answer.filter((item) => isObject(item) && Object.keys(item).length > 0) : [];
}
