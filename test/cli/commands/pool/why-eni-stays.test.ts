import { readFileSync } from 'node:fs';
import test from 'ava';
import {
  type EniSituation,
  type RecordedCall,
  type Stay,
  whyEniStays,
} from '../../../../cli/commands/pool/why-eni-stays.ts';

type Parts = Partial<Omit<EniSituation, 'node' | 'pool'>> & {
  readonly node?: Partial<EniSituation['node']>;
  readonly pool?: Partial<EniSituation['pool']>;
};

/** An attached ENI of a node that has what it asks for. */
function situationOf({ node, pool, ...parts }: Parts): EniSituation {
  return {
    ...{ kind: 'shared', state: 'attached', isDraining: false, addresses: [] },
    ...parts,
    pool: { have: 0, offered: 0, used: 0, demand: 0, ...pool },
    node: { ...node },
  };
}

const IN_USE = { use: 'in-use', owner: 'shop/cart-0' } as const;
const IDLE = { use: 'idle' } as const;
const OFFERED = { use: 'offered' } as const;
const RELEASING = { use: 'releasing' } as const;
const CONFIRMED = { supply: 7, observed: 7 };
const BEHIND = { supply: 8, observed: 7 };
/** The pool of a node that asks for what it has, 5 spare. */
const FULL = { have: 7, used: 2, demand: 7, warm: { min: 5, max: 5 } };

function call(action: string, parts: Partial<RecordedCall> = {}): RecordedCall {
  return { action, phase: 'Accepted', ageMs: 61_000, tries: 1, lastError: '', ...parts };
}

const CASES: readonly (readonly [what: string, parts: Parts, reasons: readonly (readonly [string, RegExp])[]])[] = [
  [
    'Pods use its addresses',
    { addresses: ['a/0', 'a/1', 'a/2', 'a/3', 'a/3'].map((owner) => ({ use: 'in-use', owner })) },
    [['in-use', /^4 Pods use its addresses: a\/0, a\/1, a\/2 and 1 more$/]],
  ],
  [
    'an exclusive ENI of a Pod',
    { kind: 'exclusive', addresses: [IN_USE] },
    [['in-use', /^the Pod shop\/cart-0 has it$/]],
  ],
  [
    'addresses cool down',
    { addresses: [61_000, 5_000].map((coolRemainingMs) => ({ use: 'cooling', coolRemainingMs })) },
    [['cooling', /^2 addresses cool down, for 1m more$/]],
  ],
  [
    'load balancers still have addresses without a Pod',
    { addresses: [{ use: 'registered' }, { use: 'registered' }] },
    [['registered', /^2 addresses without a Pod are still published as targets of load balancers/]],
  ],
  [
    'a load balancer still has an exclusive ENI without a Pod',
    { kind: 'exclusive', addresses: [{ use: 'registered' }] },
    [['registered', /^its address without a Pod is still published as a target/]],
  ],
  [
    'a static ENI without a Pod',
    { kind: 'exclusive', addresses: [{ use: 'static', owner: 'shop/db-0' }] },
    [['static', /^it is static for shop\/db-0$/]],
  ],
  [
    'it is being attached',
    { state: 'attaching', calls: [call('AttachNetworkInterface')] },
    [['attaching', /^ipamd attaches it: AttachNetworkInterface Accepted for 1m, 1 try$/]],
  ],
  [
    'it is detached, and no call is on record',
    { state: 'detaching', addresses: [RELEASING], calls: [] },
    [['detaching', /no call is on record yet$/]],
  ],
  [
    'a detachment fails',
    {
      state: 'detaching',
      calls: [call('DetachNetworkInterface', { phase: 'Unclear', tries: 3, lastError: 'InternalError: try again' })],
    },
    [['detaching', /DetachNetworkInterface Unclear for 1m, 3 tries, InternalError: try again$/]],
  ],
  ['it is not attached, as the agent sees it', { state: 'not-attached' }, [['not-attached', /attaches or detaches/]]],
  [
    'addresses are being unassigned',
    { addresses: [RELEASING], calls: [call('UnassignPrivateIpAddresses')] },
    [['releasing', /^ipamd unassigns 1 address: UnassignPrivateIpAddresses Accepted/]],
  ],
  ['the same, as the agent sees it', { addresses: [RELEASING] }, [['releasing', /^ipamd unassigns 1 address$/]]],
  [
    'another call is on record for it',
    { addresses: [IN_USE], calls: [call('ModifyNetworkInterfaceAttribute')] },
    [
      ['in-use', /./],
      ['call', /ModifyNetworkInterfaceAttribute Accepted/],
    ],
  ],
  [
    'all is offered, and the instance has another call',
    { addresses: [OFFERED], node: { instanceCall: call('CreateNetworkInterface') }, pool: { offered: 1 } },
    [
      ['instance-busy', /one ENI at a time.*CreateNetworkInterface/],
      ['offered', /^1 address is offered/],
    ],
  ],
  [
    'the node has all the calls that it may have',
    { addresses: [OFFERED], node: { calls: { count: 16, max: 16 } }, pool: { offered: 1 } },
    [
      ['intents-full', /^the node has 16 calls on record/],
      ['offered', /./],
    ],
  ],
  [
    'the cloud refuses',
    { addresses: [OFFERED], refusal: 'cannot take addresses off eni-1: no', pool: { offered: 1 } },
    [
      ['refused', /^the cloud refuses: cannot take addresses off eni-1: no$/],
      ['offered', /./],
    ],
  ],
  [
    'the node is torn down',
    { addresses: [IN_USE, IDLE], isDraining: true, node: { isLeaving: true }, pool: { have: 2, demand: 9 } },
    [
      ['in-use', /./],
      ['node-draining', /once no Pod uses it$/],
    ],
  ],
  [
    'the ENI drains: the pool has no say',
    { addresses: [IN_USE], isDraining: true, pool: FULL, node: { waitingAdds: ['shop/cart-1'] } },
    [
      ['in-use', /./],
      ['draining', /once no Pod uses it$/],
    ],
  ],
  [
    'no agent answers',
    { addresses: [IDLE], node: { whyNoAgent: 'there is no socket' }, pool: { demand: undefined } },
    [['agent-silent', /nothing more is offered: there is no socket$/]],
  ],
  [
    'the agent has not acted on the supply',
    { addresses: [IDLE], node: { epochs: BEHIND }, pool: { have: 1, demand: 0 } },
    [['agent-behind', /supply epoch 8, seen by the agent: 7$/]],
  ],
  [
    'the agent has not written yet',
    { addresses: [IDLE], node: { epochs: { supply: 8, observed: undefined } }, pool: { have: 1, demand: undefined } },
    [['agent-behind', /not written its demand/]],
  ],
  [
    'supply comes from a file',
    { addresses: [IN_USE, IDLE], node: { isSupplyFile: true, waitingAdds: ['shop/cart-1'] }, pool: FULL },
    [
      ['in-use', /./],
      ['supply-file', /offers nothing$/],
    ],
  ],
  [
    'the agent reports a problem',
    { addresses: [IDLE], node: { supplyProblem: 'epoch 3 is below 4' }, pool: FULL },
    [
      ['supply-problem', /^the agent reports of its supply: epoch 3 is below 4$/],
      ['warm', /./],
    ],
  ],
  [
    'an older object was restored',
    { addresses: [IDLE], node: { epochs: { supply: 6, observed: 7 } }, pool: { have: 1, demand: 0 } },
    [['supply-problem', /older object.*supply epoch 6, seen by the agent: 7$/]],
  ],
  [
    'ADDs wait',
    { addresses: [IDLE], node: { waitingAdds: ['shop/cart-1'] }, pool: { have: 1, used: 0, demand: 1 } },
    [
      ['waiting-adds', /^1 ADD waits for an address: shop\/cart-1$/],
      ['demand', /./],
    ],
  ],
  [
    'the warm target',
    { addresses: [IDLE], pool: { ...FULL, warm: { min: 2, max: 5 } } },
    [['warm', /^the node keeps 2 to 5 spare \(warm target\)$/]],
  ],
  [
    'more is asked for than the warm target',
    { addresses: [IDLE], pool: { ...FULL, demand: 9 } },
    [
      ['warm', /^the node keeps 5 spare/],
      ['demand', /^the node asks for 2 above its warm target/],
    ],
  ],
  [
    'the demand, where the source has no warm target',
    { addresses: [IDLE], node: { epochs: CONFIRMED }, pool: { have: 7, used: 2, demand: 7 } },
    [['demand', /^the node asks for 7 addresses, and has 7 that are not offered$/]],
  ],
  [
    'desired-route-eni-pod-num',
    { addresses: [IDLE], node: { epochs: CONFIRMED }, pool: { have: 9, used: 2, demand: 9, minimum: 4 } },
    [
      ['minimum', /at least 4 addresses/],
      ['demand', /./],
    ],
  ],
  [
    'an empty ENI that is needed',
    { pool: { ...FULL, demand: 8 } },
    [
      ['warm', /./],
      ['demand', /./],
    ],
  ],
  [
    'surplus goes one by one',
    { addresses: [IDLE], pool: { ...FULL, have: 10 } },
    [['pace', /^the node has 3 more than it asks for: .* offers one, from the emptiest ENI first, every 2 minutes/]],
  ],
  [
    'all surplus goes at a time',
    { addresses: [IDLE], node: { isQuickRelease: true, epochs: CONFIRMED }, pool: { have: 4, demand: 1 } },
    [['pace', /offers all every 2 minutes/]],
  ],
  [
    'a surplus exclusive ENI',
    { kind: 'exclusive', addresses: [IDLE], node: { isQuickRelease: true }, pool: { have: 4, demand: 1 } },
    [['pace', /offers one every 2 minutes/]],
  ],
  [
    'an offer that the agent has to confirm',
    { addresses: [OFFERED, OFFERED], node: { epochs: BEHIND }, pool: { offered: 2, demand: 0 } },
    [['offer-unconfirmed', /^2 addresses are offered, .* supply epoch 8, seen by the agent: 7$/]],
  ],
  [
    'an exclusive ENI whose offer has to be confirmed',
    { kind: 'exclusive', addresses: [OFFERED], node: { epochs: BEHIND }, pool: { offered: 1 } },
    [['offer-unconfirmed', /^it is offered/]],
  ],
  [
    'an offer that ipamd has not acted on',
    { addresses: [OFFERED, OFFERED], node: { epochs: CONFIRMED }, pool: { have: 3, offered: 2, demand: 3 } },
    [['offered', /^2 addresses are offered, and ipamd has not taken them yet$/]],
  ],
  [
    'an offer that the node needs again',
    { addresses: [OFFERED], node: { epochs: CONFIRMED }, pool: { have: 3, offered: 1, demand: 4 } },
    [['demand', /./]],
  ],
  ['nothing shows', { node: { epochs: CONFIRMED } }, [['unknown', /whether ipamd has a leader/]]],
];

for (const [what, parts, wanted] of CASES) {
  test(`whyEniStays: ${what}`, (t) => {
    const stays = whyEniStays(situationOf(parts));
    t.deepEqual(
      stays.map(({ reason }) => reason as string),
      wanted.map(([reason]) => reason),
    );
    for (const [index, [, text]] of wanted.entries()) t.regex(stays[index]?.text ?? '', text);
  });
}

/** Every reason; `unlisted` is of ENIs without a NodeENIConfig, `uplinks` of `findPoolStays`. */
const REASONS: Readonly<Record<Stay['reason'], 'derived' | 'unlisted' | 'of the pool'>> = {
  ...{
    'in-use': 'derived',
    cooling: 'derived',
    registered: 'derived',
    static: 'derived',
    'not-attached': 'derived',
    attaching: 'derived',
  },
  ...{ detaching: 'derived', releasing: 'derived', call: 'derived', 'instance-busy': 'derived' },
  ...{ 'intents-full': 'derived', refused: 'derived', 'node-draining': 'derived', draining: 'derived' },
  ...{
    'agent-silent': 'derived',
    'agent-behind': 'derived',
    'supply-file': 'derived',
    'supply-problem': 'derived',
  },
  ...{ 'waiting-adds': 'derived', warm: 'derived', minimum: 'derived', demand: 'derived', pace: 'derived' },
  ...{ 'offer-unconfirmed': 'derived', offered: 'derived', unlisted: 'unlisted', unknown: 'derived' },
  uplinks: 'of the pool',
};

test('whyEniStays: every reason has a case, and docs/cli.md explains it', (t) => {
  const derived = Object.entries(REASONS).flatMap(([reason, how]) => (how === 'derived' ? [reason] : []));
  const shown = new Set(CASES.flatMap(([, , wanted]) => wanted.map(([reason]) => reason)));
  t.deepEqual([...shown].sort(), derived.sort());
  const docs = readFileSync(new URL('../../../../docs/cli.md', import.meta.url), 'utf8');
  const rows = docs.slice(docs.indexOf('| an ENI stays |')).split('\n\n')[0] ?? '';
  const named = rows.split('\n').flatMap((row) => (row.split('|')[1] ?? '').match(/(?<=`)[a-z-]+(?=`)/g) ?? []);
  t.deepEqual(named.sort(), Object.keys(REASONS).sort());
});
