import test from 'ava';
import { nameRefusal } from '../../../../cli/commands/explain/name-refusal.ts';
import { UserError } from '../../../../runtime/user-error.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';
import { SUMMARY_SAMPLE } from '../../agent/samples.ts';

const GONE = new UserError('NOT_FOUND', 'no Pod shop/cart-7 is on this node', 'tke-eni pods');
const SENTENCE = 'the API server refuses to update nodeeniconfigs (403 FORBIDDEN, since 90 s): no';

test('nameRefusal: says of a Pod without an address what the API server refuses the agent', async (t) => {
  const dir = createTempDir('explain-refused');
  t.teardown(dir.close);
  const place = { socket: dir.join('agent.sock'), agentTimeoutMs: 200 };
  t.is(await nameRefusal(GONE, place), GONE, 'without an agent');
  const agent = await startFakeAgent(place.socket, { summary: SUMMARY_SAMPLE });
  t.teardown(agent.close);
  t.is(await nameRefusal(GONE, place), GONE, 'an agent that nothing is refused to');
  agent.answers.summary = { ...SUMMARY_SAMPLE, apiFailures: [{ summary: SENTENCE, isNeededByPods: true }] };
  const named = await nameRefusal(GONE, place);
  t.like(named, { code: 'NOT_FOUND', message: GONE.message });
  t.regex(named instanceof UserError ? named.next : '', /waits for this: the API server refuses to update/);
  const usage = new UserError('USAGE', 'no', 'yes');
  t.is(await nameRefusal(usage, place), usage);
});
