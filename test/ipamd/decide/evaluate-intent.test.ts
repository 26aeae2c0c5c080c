import test from 'ava';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { Intent } from '../../../ipamd/decide/decision.ts';
import { evaluateIntent } from '../../../ipamd/decide/evaluate-intent.ts';

const ENI_ID = 'eni-00000001';
const [KEPT, OLD, NEW] = ['10.0.1.2', '10.0.1.3', '10.0.1.4'] as const;
const STATUS = {
  eniInfos: [{ eniID: ENI_ID, state: 'Attached', addresses: [{ ip: KEPT, state: 'Assigned' }] }],
} as unknown as NodeEniConfigStatus;
const ASSIGN: Intent = {
  id: '0000000000000001',
  action: 'AssignPrivateIpAddresses',
  phase: 'Unclear',
  leaderEpoch: 1,
  requestTimeoutSeconds: 10,
  eniID: ENI_ID,
  ipCount: 1,
} as Intent;

type Case = {
  readonly what: string;
  readonly shown: readonly string[];
  readonly pending?: readonly string[];
  readonly answered?: readonly string[];
  readonly removed?: readonly string[];
  readonly is: readonly string[] | 'repeat' | 'unclear';
};

const CASES: readonly Case[] = [
  { what: 'a new address is the result', shown: [KEPT, NEW], is: [NEW] },
  { what: 'nothing new: it is sent again', shown: [KEPT], is: 'repeat' },
  { what: 'an address that was removed a moment ago is no result', shown: [KEPT, OLD], removed: [OLD], is: 'repeat' },
  { what: 'beside a removed one the new one counts', shown: [KEPT, OLD, NEW], removed: [OLD], is: [NEW] },
  { what: 'with an answer only what it named counts', shown: [KEPT, OLD, NEW], answered: [NEW], is: [NEW] },
  { what: 'an answer whose address is not there: it is sent again', shown: [KEPT, OLD], answered: [NEW], is: 'repeat' },
  {
    what: 'an answer counts for an address that was removed a moment ago',
    shown: [KEPT, OLD],
    answered: [OLD],
    removed: [OLD],
    is: [OLD],
  },
  { what: 'a pending new address: wait', shown: [KEPT], pending: [NEW], is: 'unclear' },
  { what: 'a pending removed address is not waited for', shown: [KEPT], pending: [OLD], removed: [OLD], is: 'repeat' },
];

for (const { what, shown, pending = [], answered, removed = [], is } of CASES) {
  test(`evaluateIntent, assignment of a number: ${what}`, (t) => {
    const eni = { eniID: ENI_ID, state: 'AVAILABLE', ips: shown, pendingIps: pending, securityGroups: [] };
    const snapshot = { enis: new Map([[ENI_ID, eni]]), isComplete: true } as unknown as Parameters<
      typeof evaluateIntent
    >[1];
    const intent = answered === undefined ? ASSIGN : { ...ASSIGN, ips: answered };
    const evaluation = evaluateIntent(intent, snapshot, STATUS, (ip) => removed.includes(ip));
    const seen = evaluation !== 'repeat' && evaluation.kind === 'done' ? evaluation.result : evaluation;
    const expected = Array.isArray(is) ? { action: 'AssignPrivateIpAddresses' as const, ips: is } : is;
    t.deepEqual(typeof seen === 'object' && 'kind' in seen ? seen.kind : seen, expected);
  });
}
