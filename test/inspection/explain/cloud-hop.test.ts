import test from 'ava';
import type { SupplyAddress } from '../../../agent/journal/supply.ts';
import { cloudHop } from '../../../inspection/explain/cloud-hop.ts';
import { buildExplainContext, type ExplainContext } from '../../../inspection/explain/explain-context.ts';
import { ifKnown, known, unknown } from '../../../inspection/node/known.ts';
import { nodeFixture } from '../../cli/commands/graph/node-fixture.ts';
import { NOT_ASKED } from './not-asked.ts';

const RECORDED = 'by the supply that is recorded';
const facts = nodeFixture({ enis: 2, podsPerEni: 1 });
const context = buildExplainContext(facts, unknown('not asked', ''), NOT_ASKED);
const [view] = context.pods;
const ip = view?.ips[0] ?? '';

type Changes = { readonly on?: number; readonly isAttached?: boolean; readonly state?: SupplyAddress['state'] };

/** The context with the Pod's address on an ENI of the supply. */
function contextOf({ on, isAttached = true, state = 'assigned' }: Changes): ExplainContext {
  const agent = ifKnown(facts.agent);
  const supply = agent?.journal.supply;
  if (agent === undefined || supply === undefined) throw new Error('no supply');
  const address: SupplyAddress = { ip, family: 4, assignmentId: 'ipa-1', state };
  const enis = supply.enis.map((eni, index) => ({
    ...eni,
    attached: isAttached,
    addresses: index === on ? [address] : [],
  }));
  const changed = known({ ...agent, journal: { ...agent.journal, supply: { ...supply, enis } } });
  return buildExplainContext({ ...facts, agent: changed }, unknown('not asked', ''), NOT_ASKED);
}

const CASES: readonly (readonly [what: string, Changes, finding: string | undefined])[] = [
  ['as it should be', { on: 0 }, undefined],
  ['on no ENI', {}, 'source-not-ours'],
  ['on another ENI', { on: 1 }, 'source-not-ours'],
  ['on an ENI that is not attached', { on: 0, isAttached: false }, 'eni-detached'],
  ['being released', { on: 0, state: 'releasing' }, 'source-not-ours'],
];

for (const [what, changes, id] of CASES) {
  test(`cloudHop: says that it is judged by the record when the address is ${what}`, (t) => {
    if (view === undefined) return t.fail('no Pod');
    const { title, finding } = cloudHop(contextOf(changes), ip, view.eni);
    t.is(finding?.id, id);
    t.true(title.includes(RECORDED), title);
    t.true(finding === undefined || finding.what.includes(RECORDED), finding?.what);
  });
}
