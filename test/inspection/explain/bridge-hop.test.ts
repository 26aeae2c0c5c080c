import test from 'ava';
import { bridgeHop } from '../../../inspection/explain/bridge-hop.ts';
import { buildExplainContext, type ExplainContext } from '../../../inspection/explain/explain-context.ts';
import { unknown } from '../../../inspection/node/known.ts';
import type { NetnsFacts } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { IFF_PROMISC, IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { AF_INET } from '../../../netlink/uapi/netlink.ts';
import { CBR0_IFINDEX, grNode } from '../node/gr-node.ts';
import { NOT_ASKED } from './not-asked.ts';

const CALLS = 'net.bridge.bridge-nf-call-iptables';

/** A node whose first Pod is on a bridge that is as it should be, but for `change`. */
function contextOf(change: (host: NetnsFacts) => Partial<NetnsFacts>): ExplainContext {
  const facts = grNode();
  const [model] = facts.host.addresses;
  if (model === undefined) throw new Error('the fixture has addresses');
  const own = { ...model, family: AF_INET, ifindex: CBR0_IFINDEX, address: '172.20.0.1', prefixlen: 26 };
  const links = facts.host.links.map((link) => {
    if (link.ifindex === CBR0_IFINDEX) return { ...link, flags: link.flags | IFF_UP };
    return link.master === CBR0_IFINDEX ? { ...link, bridgePort: { mode: 1 } } : link;
  });
  const host = {
    ...facts.host,
    links,
    addresses: [...facts.host.addresses, { ...own, local: '172.20.0.1' }],
    sysctls: new Map([...facts.host.sysctls, [CALLS, '1']]),
  };
  const changed = { ...facts, host: { ...host, ...change(host) } };
  return buildExplainContext(changed, unknown('not asked', ''), NOT_ASKED);
}

const withLink =
  (isWanted: (link: LinkMessage) => boolean, change: (link: LinkMessage) => Partial<LinkMessage>) =>
  ({ links }: NetnsFacts): Partial<NetnsFacts> => ({
    links: links.map((link) => (isWanted(link) ? { ...link, ...change(link) } : link)),
  });
const isBridge = ({ ifindex }: LinkMessage): boolean => ifindex === CBR0_IFINDEX;
const isPort = ({ master }: LinkMessage): boolean => master === CBR0_IFINDEX;

const CASES: readonly (readonly [when: string, (host: NetnsFacts) => Partial<NetnsFacts>, finds: string])[] = [
  ['all is well', () => ({}), 'ok undefined'],
  ['the bridge is gone', ({ links }) => ({ links: links.filter((link) => !isBridge(link)) }), 'broken bridge-missing'],
  ['the bridge is down', withLink(isBridge, ({ flags }) => ({ flags: flags & ~IFF_UP })), 'broken bridge-changed'],
  [
    'the bridge lacks the gateway',
    ({ addresses }) => ({ addresses: addresses.filter(({ ifindex }) => ifindex !== CBR0_IFINDEX) }),
    'broken bridge-changed',
  ],
  [
    'the bridge is promiscuous',
    withLink(isBridge, ({ flags }) => ({ flags: flags | IFF_PROMISC })),
    'warning bridge-changed',
  ],
  ['the bridge is in a link group', withLink(isBridge, () => ({ group: 77 })), 'warning bridge-changed'],
  ['the port left', withLink(isPort, () => ({ master: 0 })), 'broken bridge-port-changed'],
  ['the port has no hairpin', withLink(isPort, () => ({ bridgePort: { mode: 0 } })), 'warning bridge-port-changed'],
  ['the bridge takes smaller packets', withLink(isBridge, () => ({ mtu: 1_400 })), 'warning mtu-mismatch'],
  [
    'packets between ports pass no iptables',
    ({ sysctls }) => ({ sysctls: new Map([...sysctls, [CALLS, '0']]) }),
    'warning br-netfilter',
  ],
];

for (const [when, change, expected] of CASES) {
  test(`bridgeHop: ${when}`, (t) => {
    const context = contextOf(change);
    const view = context.pods.find(({ gr }) => gr !== undefined);
    if (view === undefined) return t.fail('there is no GlobalRoute Pod');
    const { verdict, finding, title } = bridgeHop(context, view);
    t.is(`${verdict} ${finding?.id}`, expected, finding?.what);
    t.regex(title, /^bridge cbr0, port \S+$/);
  });
}
