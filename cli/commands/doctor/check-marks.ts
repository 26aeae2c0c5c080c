import { hex } from '../../../dataplane/eni-mark.ts';
import { NFT_TABLE } from '../../../dataplane/numbers.ts';
import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { NodeModel } from '../../../inspection/model/node-model.ts';
import {
  type IptablesRule,
  isReadByIptables,
  optionOf,
  parseIptablesRules,
} from '../../../inspection/node/parse-iptables-rules.ts';
import { recordOf } from '../../../runtime/json.ts';
import { type Check, done, skipped } from './check.ts';
import type { DoctorFacts } from './doctor-facts.ts';

/**
 * Programs and the rules by which their use of marks is recognised.
 * @see their documentation: Calico iptablesMarkMask, tailscale tsconst.LinuxFwmarkMask
 */
const PROGRAMS: readonly (readonly [RegExp, string])[] = [
  [/ cali-/, 'Calico'],
  [/ CILIUM_/, 'Cilium'],
  [/ ts-|0x[48]0000\/0xff0000\b/, 'Tailscale'],
  [/ KUBE-|^nft ip6? kube-proxy /, 'kube-proxy'],
  [/ AWS-/, 'the AWS VPC CNI'],
];

/** Checks that no other program uses the bits of our packet mark. */
export const MARKS_CHECK: Check = {
  id: 'marks',
  scope: 'no other program uses the bits of our packet mark, in rules, nftables and iptables',
  finds: ['mark-collision'],
  evaluate: (facts) => {
    const outline = facts.model;
    const uses = [...ofNft(facts), ...ofIptables(facts, outline)];
    if (facts.iptables.kind === 'unknown' && facts.node.host.nft.kind === 'unknown') {
      return skipped(`nft: ${facts.node.host.nft.why}; iptables: ${facts.iptables.why}`);
    }
    const clashing = uses.filter(({ writes, reads }) => ((writes | reads) & outline.markBits) !== 0);
    const byProgram = Map.groupBy(clashing, programOf);
    const findings = [...byProgram].map(([program, ofProgram]) => {
      const bits = ofProgram.reduce((sum, { writes, reads }) => sum | writes | reads, 0) & outline.markBits;
      const [first] = ofProgram;
      const location = first === undefined || first.where === program ? '' : `${first.where}: `;
      return finding('mark-collision', {
        what: `${program} uses bits ${hex(bits)} of the mark, ours are ${hex(outline.markBits)}: ${location}${first?.shown}`,
        fix: [
          'give the agent an --eni-mark-mask with 8 bits in a row that are free, or the other program another mask',
        ],
        subjects: [],
      });
    });
    return done(findings, [`our bits: ${hex(outline.markBits)}; ${uses.length} other uses of marks seen`]);
  },
};

function programOf({ where, shown }: MarkUse): string {
  return PROGRAMS.find(([pattern]) => pattern.test(`${where} ${shown}`))?.[1] ?? where;
}

/**
 * Returns uses of the mark in nftables. Tables of iptables-nft are skipped where iptables-save was read, because nft
 * does not show the content of their targets.
 */
function ofNft({ node: { host }, iptables }: DoctorFacts): readonly MarkUse[] {
  const objects = host.nft.kind === 'known' ? host.nft.value.objects : [];
  return objects.flatMap((object) => {
    if (isReadByIptables(iptables, object['rule'])) return [];
    const use = markUseOfNft(object);
    return use === undefined || use.where.startsWith(`nft inet ${NFT_TABLE} `) ? [] : [use];
  });
}

function ofIptables({ iptables }: DoctorFacts, { primary, enis }: NodeModel): readonly MarkUse[] {
  if (iptables.kind === 'unknown') return [];
  const ways = new Set([primary?.ifname, ...enis.map(({ ifname }) => ifname)]);
  return parseIptablesRules(iptables.value, []).rules.flatMap((rule) => {
    const iif = optionOf(rule.args, '-i');
    // Packets that arrive by other interfaces are not of Pods.
    if (iif !== undefined && !ways.has(iif) && !iif.startsWith('eni')) return [];
    const use = rule.chain === 'OUTPUT' ? undefined : markUseOfIptables(rule);
    return use === undefined ? [] : [use];
  });
}

/** A place where another program sets or reads bits of the packet mark or the connection mark. */
type MarkUse = {
  /** The place: 'iptables mangle cali-PREROUTING', 'nft inet foo bar'. */
  readonly where: string;
  /** Bits that it changes. */
  readonly writes: number;
  /** Bits that it matches. */
  readonly reads: number;
  /** Text that shows the use. */
  readonly shown: string;
};

const ALL_BITS = 0xffffffff;

/**
 * Returns how a rule of iptables uses the mark; undefined when it does not.
 * @see iptables-extensions(8) MARK, CONNMARK, mark
 */
export function markUseOfIptables(rule: IptablesRule): MarkUse | undefined {
  const { args, table, chain, backend } = rule;
  const writes = writtenBits(args);
  const reads = args.flatMap((arg, at) => (arg === '--mark' ? [maskOf(args[at + 1] ?? '')] : []));
  const read = reads.reduce((bits, mask) => (bits | mask) >>> 0, 0);
  if (writes === 0 && read === 0) return undefined;
  return { where: `iptables-${backend} ${table} ${chain}`, writes, reads: read, shown: args.join(' ') };
}

function writtenBits(args: readonly string[]): number {
  const xmark = optionOf(args, '--set-xmark');
  if (xmark !== undefined) {
    const [value = '0', mask = 'ffffffff'] = xmark.split('/');
    // The kernel clears the bits of the mask and then XORs the value in.
    return (number(value) | (xmark.includes('/') ? number(mask) : ALL_BITS)) >>> 0;
  }
  const set = optionOf(args, '--set-mark');
  if (set !== undefined) return maskOf(set);
  const or = optionOf(args, '--or-mark', '--xor-mark');
  if (or !== undefined) return number(or);
  const and = optionOf(args, '--and-mark');
  if (and !== undefined) return ~number(and) >>> 0;
  if (args.includes('--restore-mark')) return number(optionOf(args, '--nfmask', '--mask') ?? '0xffffffff');
  if (args.includes('--save-mark')) return number(optionOf(args, '--ctmask', '--mask') ?? '0xffffffff');
  return 0;
}

/** Returns the mask of 'value/mask'; all bits where there is no mask. */
function maskOf(text: string): number {
  return text.includes('/') ? number(text.split('/')[1] ?? '') : ALL_BITS;
}

function number(text: string): number {
  return (Number(text) || 0) >>> 0;
}

/** Returns how a rule of nftables uses the mark; undefined when it does not. @see libnftables-json(5) MANGLE, MATCH */
export function markUseOfNft(object: Readonly<Record<string, unknown>>): MarkUse | undefined {
  const rule = recordOf(object['rule']);
  if (!Array.isArray(rule['expr'])) return undefined;
  const writes = rule['expr'].reduce((bits: number, statement: unknown) => (bits | manglesOf(statement)) >>> 0, 0);
  const reads = rule['expr'].reduce((bits: number, statement: unknown) => (bits | matchesOf(statement)) >>> 0, 0);
  if (writes === 0 && reads === 0) return undefined;
  const where = `nft ${rule['family']} ${rule['table']} ${rule['chain']}`;
  const does = [
    ...(writes === 0 ? [] : [`sets bits of ${hex(writes)}`]),
    ...(reads === 0 ? [] : [`looks at ${hex(reads)}`]),
  ];
  const shown = `${rule['handle'] === undefined ? 'a rule' : `the rule with handle ${rule['handle']}`} ${does.join(' and ')}`;
  return { where, writes, reads, shown };
}

function manglesOf(statement: unknown): number {
  const mangle = recordOf(recordOf(statement)['mangle']);
  if (isMark(mangle['key'])) return changedBits(mangle['value'], isMark);
  return isConnectionMark(mangle['key']) ? changedBits(mangle['value'], isConnectionMark) : 0;
}

/**
 * Returns the bits of a mark that may change when this expression is assigned to it; `isSame` recognises the mark
 * itself.
 */
function changedBits(value: unknown, isSame: (value: unknown) => boolean): number {
  if (isSame(value)) return 0;
  const operation = recordOf(value);
  const [operator, operands] = Object.entries(operation)[0] ?? [];
  if (!Array.isArray(operands) || operator === undefined) return ALL_BITS;
  const constants = operands.filter((operand) => typeof operand === 'number');
  const inner = operands.filter((operand) => typeof operand !== 'number');
  const before = inner.reduce<number>((bits, operand) => (bits | changedBits(operand, isSame)) >>> 0, 0);
  const constant = constants[0];
  if (constant === undefined || inner.length !== 1) return ALL_BITS;
  if (operator === '|' || operator === '^') return (before | constant) >>> 0;
  return operator === '&' ? (before | ~constant) >>> 0 : ALL_BITS;
}

/**
 * Returns the bits that a statement compares with a mask. A comparison with the whole mark is left out: it is often
 * made by a program that uses all bits in a namespace of its own.
 */
function matchesOf(statement: unknown): number {
  const left = recordOf(recordOf(recordOf(statement)['match'])['left']);
  const operands = left['&'];
  if (!Array.isArray(operands) || !operands.some(isMark)) return 0;
  const mask = operands.find((operand) => typeof operand === 'number');
  return typeof mask === 'number' ? mask >>> 0 : 0;
}

function isMark(value: unknown): boolean {
  const object = recordOf(value);
  return recordOf(object['meta'])['key'] === 'mark';
}

function isConnectionMark(value: unknown): boolean {
  return recordOf(recordOf(value)['ct'])['key'] === 'mark';
}
