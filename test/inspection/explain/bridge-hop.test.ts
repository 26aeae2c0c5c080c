import test from 'ava';
import { bridgeHop } from '../../../inspection/explain/bridge-hop.ts';
import { buildExplainContext, type ExplainContext } from '../../../inspection/explain/explain-context.ts';
import { unknown } from '../../../inspection/node/known.ts';
import type { NetnsFacts } from '../../../inspection/node/node-facts.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { IFF_PROMISC, IFF_UP } from '../../../netlink/uapi/if-link.ts';
import { CBR0_IFINDEX, grNode } from '../node/gr-node.ts';
import { NOT_ASKED } from './not-asked.ts';

const CALLS = 'net.bridge.bridge-nf-call-iptables';

/** A node with a Pod on a bridge that is as it should be, but for `change`. */
function contextOf(change: (host: NetnsFacts) => Partial<NetnsFacts>): ExplainContext {
  const facts = grNode();
  const changed = { ...facts, host: { ...facts.host, ...change(facts.host) } };
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
