import { FLOWTABLE_TABLE, NFT_TABLE } from '../../dataplane/numbers.ts';
import type { ElementId } from '../catalogue/element-id.ts';
import { ifKnown } from '../node/known.ts';
import type { Known } from '../node/node-facts.ts';
import type { IptablesFacts } from '../node/parse-iptables-rules.ts';
import { isReadByIptables, parseIptablesRules } from '../node/parse-iptables-rules.ts';
import {
  type ChainVerdict,
  evaluateChain,
  type MetRewrite,
  type Packet,
  type RuleStep,
  rewritesIn,
} from './evaluate-chain.ts';
import { evaluateIptablesRules } from './evaluate-iptables-rules.ts';
import { evaluateNftRules, readNftSets } from './evaluate-nft-rules.ts';
import { type NftChain, parseNftChains } from './parse-nft-chains.ts';

/** Places where a packet passes firewalls, in the order of its way. */
const HOOKS = ['ingress', 'prerouting', 'input', 'forward', 'output', 'postrouting', 'egress'] as const;

/** One of these places. */
export type Hook = (typeof HOOKS)[number];

/** A base chain of another program, with its rules. */
export type FirewallChain = {
  /** 'the chain pre of the nftables table inet other (hook prerouting, policy accept)'. */
  readonly title: string;
  /** The same in few words: 'chain inet other pre (hook prerouting, policy accept)'. */
  readonly name: string;
  readonly hook: Hook;
  readonly families: readonly (4 | 6)[];
  /** Links that a chain at ingress or egress is for; undefined: every link, or those are not known. */
  readonly devices: readonly string[] | undefined;
  readonly isDropPolicy: boolean;
  /** Its place among the chains of its hook: lower ones are first. */
  readonly priority: number;
  /** Number of rules in its table and of elements in its sets: what one evaluation may cost. */
  readonly ruleCount: number;
  /** What becomes of a packet. */
  verdict(packet: Packet): ChainVerdict;
  /** What it changes of a packet. */
  rewrites(packet: Packet): readonly MetRewrite[];
  readonly element: ElementId;
  /** Command that shows it. */
  readonly show: string;
  /** Commands that let such packets of Pods pass; empty where no condition on the Pods' interfaces is possible there. */
  fix(packet: Packet): readonly string[];
};

/** Rulesets to build chains from. */
type Rulesets = {
  /** Objects of `nft -j list ruleset`. */
  readonly objects: readonly Readonly<Record<string, unknown>>[];
  readonly iptables: Known<Pick<IptablesFacts, 'legacy' | 'nft'>>;
  /** Numbers of the queues that a program reads from. */
  readonly queueListeners: Known<readonly number[]>;
};

/**
 * Builds the chains of other programs that can drop packets, of nftables and of iptables. A table of iptables-nft comes
 * from iptables where that was read, as it shows more detail.
 */
export function buildFirewallChains(rulesets: Rulesets): readonly FirewallChain[] {
  return [...iptablesChains(rulesets), ...nftChains(rulesets)];
}

/** Reports whether a chain of iptables is of kube-proxy; those of kube-router are for policies of Pods. */
function isOfServices(chain: string): boolean {
  return chain.startsWith('KUBE-') && !/^KUBE-(NWPLCY|POD-FW|ROUTER)-/.test(chain);
}

/** Ports and sets of addresses that kube-proxy asks for are those of Services: what an ordinary packet leaves open. */
function leftOpen(isOpen: boolean, steps: readonly RuleStep[]): readonly RuleStep[] {
  if (!isOpen) return steps;
  return steps.map((step) => (typeof step.match === 'string' ? step : { ...step, match: 'maybe' }));
}

const BUILTIN: Readonly<Record<string, Hook>> = {
  PREROUTING: 'prerouting',
  INPUT: 'input',
  FORWARD: 'forward',
  OUTPUT: 'output',
  POSTROUTING: 'postrouting',
};
/**
 * Tables of iptables whose rules are for packets and not for their translation, with the priorities of their chains.
 * @see linux/netfilter_ipv4.h NF_IP_PRI_*
 */
const PACKET_TABLES: Readonly<Record<string, number>> = { raw: -300, mangle: -150, filter: 0, security: 50 };

function iptablesChains({ iptables, queueListeners }: Rulesets): readonly FirewallChain[] {
  if (iptables.kind === 'unknown') return [];
  const listeners = ifKnown(queueListeners);
  const { chains, rules } = parseIptablesRules(iptables.value, []);
  return chains.flatMap(({ backend, family, table, chain, policy }): readonly FirewallChain[] => {
    const hook = BUILTIN[chain];
    const priority = PACKET_TABLES[table];
    if (hook === undefined || priority === undefined) return [];
    const program = `${family === 4 ? 'iptables' : 'ip6tables'}-${backend}`;
    const ofTable = rules.filter((rule) => rule.backend === backend && rule.family === family && rule.table === table);
    const byChain = Map.groupBy(ofTable, (rule) => rule.chain);
    const inTable = table === 'filter' ? '' : ` -t ${table}`;
    const isDropPolicy = policy === 'DROP';
    const stepsFor = (packet: Packet) => (each: string) =>
      leftOpen(isOfServices(each), evaluateIptablesRules(byChain.get(each) ?? [], packet, listeners));
    const name = `${chain} of ${program}${table === 'filter' ? '' : `, table ${table}`} (policy ${policy})`;
    return [
      {
        title: `the chain ${name}`,
        name: `chain ${name}`,
        ...{ hook, families: [family], devices: undefined, isDropPolicy, priority, ruleCount: ofTable.length },
        verdict: (packet) => evaluateChain(stepsFor(packet), chain, isDropPolicy),
        rewrites: (packet) => rewritesIn(stepsFor(packet), chain),
        element: `nft:${table}`,
        show: `${program}${inTable} -S ${chain}`,
        fix: (packet) =>
          linkOption(hook, packet).map((option) => `${program}${inTable} -I ${chain} ${option} eni+ -j ACCEPT`),
      },
    ];
  });
}

/** Links that a rule can ask for at a hook. At postrouting iptables never knows the incoming one, and nft not before Linux 5.7. */
const LINK_OPTIONS: Readonly<Record<Hook, readonly ('-i' | '-o')[]>> = {
  ingress: [],
  prerouting: ['-i'],
  input: ['-i'],
  forward: ['-i', '-o'],
  output: ['-o'],
  postrouting: ['-o'],
  egress: [],
};

/** Returns the option by which a rule at a hook accepts the packet for the interface of its Pod; none where there is no such option. */
function linkOption(hook: Hook, { iifs, oifs }: Packet): readonly ('-i' | '-o')[] {
  return LINK_OPTIONS[hook].filter((option) => isPodLink(option === '-i' ? iifs : oifs)).slice(0, 1);
}

function isPodLink(names: readonly string[]): boolean {
  return names.length > 0 && names.every((name) => name.startsWith('eni'));
}

const LINK_KEYS = { '-i': 'iifname', '-o': 'oifname' } as const;

function nftChains({ objects, iptables, queueListeners }: Rulesets): readonly FirewallChain[] {
  const listeners = ifKnown(queueListeners);
  const chains = parseNftChains(objects);
  const tables = Map.groupBy(chains, ({ family, table }) => `${family} ${table}`);
  const setsByTable = readNftSets(objects);
  return chains
    .filter(({ family, table }) => !(family === 'inet' && (table === NFT_TABLE || table === FLOWTABLE_TABLE)))
    .filter((chain) => !isReadByIptables(iptables, chain))
    .flatMap((base): readonly FirewallChain[] => {
      const { family, table, name, policy, type, devices, priority } = base;
      const hook = HOOKS.find((each) => each === base.hook);
      if (hook === undefined || (type !== 'filter' && type !== 'route')) return [];
      const ofTable = new Map((tables.get(`${family} ${table}`) ?? []).map((chain) => [chain.name, chain.rules]));
      const isDropPolicy = policy === 'drop';
      const sets = setsByTable.get(`${family} ${table}`) ?? new Map<string, readonly unknown[]>();
      const stepsFor = (packet: Packet) => (chain: string) =>
        leftOpen(table === 'kube-proxy', evaluateNftRules(ofTable.get(chain) ?? [], packet, listeners, sets));
      const about = `(${hook === 'forward' ? '' : `hook ${hook}, `}policy ${policy})`;
      return [
        {
          title: `the chain ${name} of the nftables table ${family} ${table} ${about}`,
          name: `chain ${family} ${table} ${name} ${about}`,
          ...{ hook, devices, isDropPolicy, priority },
          ruleCount: [...ofTable.values(), ...sets.values()].reduce((sum, { length }) => sum + length, 0),
          families: family === 'ip' ? [4] : family === 'ip6' ? [6] : [4, 6],
          verdict: (packet) => evaluateChain(stepsFor(packet), name, isDropPolicy),
          rewrites: (packet) => rewritesIn(stepsFor(packet), name),
          element: `nft:${table}`,
          show: `nft list chain ${family} ${table} ${name}`,
          fix: (packet) => (table === 'firewalld' ? FIREWALLD : nftFix(base, hook, packet)),
        },
      ];
    });
}

/**
 * firewalld owns its nftables table and rewrites it, so rules are added by its own commands. @see firewalld.policies(5)
 */
const FIREWALLD = [
  'firewall-cmd --permanent --new-policy tke-eni',
  'firewall-cmd --permanent --policy tke-eni --add-ingress-zone ANY',
  'firewall-cmd --permanent --policy tke-eni --add-egress-zone ANY',
  'firewall-cmd --permanent --policy tke-eni --set-target ACCEPT',
  'firewall-cmd --reload',
];

function nftFix({ family, table, name }: NftChain, hook: Hook, packet: Packet): readonly string[] {
  return linkOption(hook, packet).map(
    (option) => `nft insert rule ${family} ${table} ${name} ${LINK_KEYS[option]} '"eni*"' accept`,
  );
}
