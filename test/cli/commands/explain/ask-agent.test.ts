import { writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { identifyExplainPlace } from '../../../../agent/api/explain-place.ts';
import type { ExplainRequest } from '../../../../agent/api/ops-messages.ts';
import { askAgent } from '../../../../cli/commands/explain/ask-agent.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';

// What `tke-eni explain` makes of an agent that answers, one that is too old, one that is silent, and none.

const QUESTION = { subject: 'default/web-0', to: undefined, from: '10.0.0.9' };
const EXPLANATION = { subject: 'Pod default/web-0', element: 'pod:x', paths: [], findings: [] };

async function place(t: ExecutionContext, explain?: Parameters<typeof startFakeAgent>[1]['explain']) {
  const dir = createTempDir('ask-agent');
  writeFileSync(dir.join('journal.db'), '');
  const socket = dir.join('agent.sock');
  const agent = await startFakeAgent(socket, explain === undefined ? {} : { explain });
  t.teardown(() => {
    agent.close();
    dir.close();
  });
  return { socket, stateDir: dir.path, agentTimeoutMs: 5_000, netns: undefined, hostRoot: '/' };
}

test('askAgent: returns what the agent explains, and says what this process would read', async (t) => {
  const asked: ExplainRequest[] = [];
  const at = await place(t, (request) => {
    asked.push(request);
    return { explanation: JSON.stringify(EXPLANATION) };
  });
  t.deepEqual(await askAgent(at, QUESTION), { explanation: EXPLANATION } as never);
  t.like(asked[0], { subject: 'default/web-0', to: '', from: '10.0.0.9' });
  const own = identifyExplainPlace({ journal: `${at.stateDir}/journal.db`, hostRoot: '/' });
  t.deepEqual(asked[0]?.place, own);
  t.is(new Set([own?.netns, own?.journal, own?.hostRoot]).size, 3);
});

test('askAgent: leaves the answer to this process when the agent declines or is too old', async (t) => {
  t.is(await askAgent(await place(t, () => ({ declined: 'busy' })), QUESTION), undefined);
  t.is(await askAgent(await place(t), QUESTION), undefined, 'an agent without the call');
});

test('askAgent: waits for a silent agent as long as --agent-timeout, and for none not at all', async (t) => {
  const at = await place(t, () => undefined);
  t.is(await askAgent({ ...at, agentTimeoutMs: 50 }, QUESTION), undefined);
  t.is(await askAgent({ ...at, socket: `${dirname(at.socket)}/no.sock` }, QUESTION), undefined);
});

test('askAgent: asks no agent about a namespace that it does not name, or a node without a journal', async (t) => {
  const at = await place(t, () => ({ explanation: JSON.stringify(EXPLANATION) }));
  t.is(await askAgent({ ...at, netns: 'n1' }, QUESTION), undefined);
  t.is(await askAgent({ ...at, stateDir: `${at.stateDir}/none` }, QUESTION), undefined);
});
