import test from 'ava';
import { decodeMessage, encodeMessage } from '../../../../agent/api/codec.ts';
import { SUMMARY_REPLY } from '../../../../agent/api/ops-messages.ts';
import type { AddressUse, PoolEniView, PoolView } from '../../../../cli/commands/pool/pool-view.ts';
import { buildStatus, isHealthy } from '../../../../cli/commands/status/build-status.ts';
import { decideReadiness } from '../../../../cli/commands/status/decide-readiness.ts';

const ENI: PoolEniView = {
  eniId: 'eni-1',
  mac: '',
  primary: [],
  attached: true,
  draining: false,
  ready: true,
  problem: '',
};
const DRAINING: PoolEniView = { ...ENI, draining: true, ready: false };

type Case = {
  readonly what: string;
  readonly uses: readonly AddressUse[];
  readonly enis?: readonly PoolEniView[];
  readonly demand?: number;
  readonly supplyProblem?: string;
  readonly code?: number;
  readonly ready: string;
  readonly healthy: boolean;
};

const CASES: readonly Case[] = [
  { what: 'a free address', uses: ['in-use', 'free'], ready: 'yes', healthy: true },
  { what: 'an address that cools', uses: ['in-use', 'cooling'], ready: 'yes', healthy: true },
  { what: 'exclusive ENIs alone', uses: [], enis: [], ready: 'yes', healthy: true },
  {
    what: 'a full node',
    uses: ['in-use', 'kept'],
    demand: 2,
    ready: 'full: each of the 2 addresses that this node may have is in use or kept',
    healthy: true,
  },
  {
    what: 'supply that waits',
    uses: ['in-use'],
    demand: 6,
    supplyProblem: 'the NodeENIConfig of this node is not there',
    ready: 'no: no address is free, and the NodeENIConfig of this node is not there',
    healthy: false,
  },
  {
    what: 'ENIs that drain',
    uses: ['in-use', 'unready', 'cooling'],
    enis: [DRAINING],
    demand: 1,
    ready: 'no: no address is free, and no ENI serves new Pods: they drain, are not attached or not set up',
    healthy: false,
  },
  {
    what: 'addresses that are given back',
    uses: ['in-use', 'offered', 'releasing'],
    demand: 3,
    ready: 'not now: no address is free; 3 are asked for, 1 are there',
    healthy: true,
  },
  { what: 'STATUS 50', uses: ['free'], code: 50, ready: 'no: m (code 50)', healthy: false },
  { what: 'STATUS 51', uses: ['free'], code: 51, ready: 'limited: m (code 51)', healthy: false },
];

for (const { what, uses, enis = [ENI], demand = 1, supplyProblem = '', code = 0, ready, healthy } of CASES) {
  test(`decideReadiness: ${what}`, (t) => {
    const addresses = uses.map((use, index) => ({
      ...{ ip: `10.0.0.${index}`, family: 4 as const, eniId: 'eni-1', assignmentId: '' },
      use,
    }));
    const pool: PoolView = { source: 'agent', nodeName: 'n1', addresses, enis, demand, supplyProblem };
    const reply = encodeMessage(SUMMARY_REPLY, { status: { code, msg: 'm', details: 'd' } });
    const status = buildStatus(pool, decodeMessage(SUMMARY_REPLY, reply));
    t.is(decideReadiness(status)?.text, ready);
    t.is(isHealthy(status), healthy);
  });
}

test('decideReadiness: is not known without an agent', (t) => {
  const pool: PoolView = { source: 'journal', nodeName: 'n1', addresses: [], enis: [], supplyProblem: '' };
  t.is(decideReadiness(buildStatus(pool, undefined)), undefined);
});
