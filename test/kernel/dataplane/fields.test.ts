import { readFileSync } from 'node:fs';
import test from 'ava';
import { planNode } from '../../../dataplane/plan-node.ts';
import { withTestNode } from './test-node.ts';

const PAGE = readFileSync(new URL('../../../docs/kernel-state.md', import.meta.url), 'utf8');

/** Fields of iproute2 that hold what a plan sets: the plan is compared with them. */
const PLANNED: Readonly<Record<string, readonly string[]>> = {
  link: ['ifindex', 'ifname', 'flags', 'mtu', 'master', 'group', 'address', 'linkinfo', 'ifalias'],
  address: ['local', 'prefixlen', 'family'],
  route: ['type', 'dst', 'gateway', 'dev', 'protocol', 'scope', 'table', 'metric', 'prefsrc', 'flags', 'pref', 'error'],
  rule: ['priority', 'src', 'srclen', 'dst', 'dstlen', 'fwmark', 'fwmask', 'table', 'protocol'],
};

/** Fields that `docs/kernel-state.md` lists with the reason why no plan has them: `kind: field, field`. */
function listed(kind: string): readonly string[] {
  const section = PAGE.split('## Attributes that no plan has\n')[1]?.split('\n## ')[0] ?? '';
  const rows = [...section.matchAll(/^\| (\w+): ([^|]+) \| [^|]+ \| [^|]+ \|$/gm)];
  return rows.filter(([, of]) => of === kind).flatMap(([, , names = '']) => names.replaceAll('`', '').split(', '));
}

test('docs/kernel-state.md: each field that the kernel prints of our objects is planned, or listed with a reason', async (t) => {
  await withTestNode(async ({ network, enis, ip, reach }) => {
    const { nft: _nft, ...desired } = planNode(network, enis, []);
    await reach(desired);
    const links = ip.json('-d', 'link', 'show', 'dev', 'eth5');
    const addresses = ip
      .json('-d', 'address', 'show', 'dev', 'eth5')
      .flatMap(({ addr_info: info }) => info as object[]);
    const routes = ['-4', '-6'].flatMap((f) => ip.json('-d', f, 'route', 'show', 'table', 'all', 'proto', '84'));
    const rules = ['-4', '-6'].flatMap((f) => ip.json('-d', f, 'rule').filter((rule) => rule['protocol'] === '84'));
    for (const [kind, objects] of Object.entries({ link: links, address: addresses, route: routes, rule: rules })) {
      t.not(objects.length, 0, kind);
      const known = new Set([...(PLANNED[kind] ?? []), ...listed(kind)]);
      const fields = new Set(objects.flatMap((object) => Object.keys(object)));
      t.deepEqual([...fields].filter((field) => !known.has(field)).toSorted(), [], `unknown fields of a ${kind}`);
    }
  });
});
