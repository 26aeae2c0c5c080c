import { writeFileSync } from 'node:fs';
import test, { type ExecutionContext } from 'ava';
import { identifyExplainPlace } from '../../../agent/api/explain-place.ts';
import type { ExplainRequest } from '../../../agent/api/ops-messages.ts';
import { openExplainer } from '../../../agent/ops/explainer.ts';
import { createTempDir } from '../../support/temp-dir.ts';

// What the agent declines. That its answers are those of the command is shown on a wired node: test/e2e/cli-faults.test.ts.

function scene(t: ExecutionContext) {
  const dir = createTempDir('explainer');
  t.teardown(dir.close);
  writeFileSync(dir.join('journal.db'), 'no journal');
  const config = { stateDir: dir.path, hostRoot: '/' };
  const place = identifyExplainPlace({ journal: dir.join('journal.db'), hostRoot: '/' });
  if (place === undefined) throw new Error('this process cannot be identified');
  const request: ExplainRequest = { subject: 'web-0', to: '', from: '', place, clientVersion: '' };
  return { explainer: openExplainer(config, async () => new Map()), request, place };
}

test('openExplainer: declines a caller of another namespace, journal or root', async (t) => {
  const { explainer, request, place } = scene(t);
  for (const change of [{ netns: '0:1' }, { journal: '0:1' }, { hostRoot: '0:1' }]) {
    const { declined, explanation } = await explainer.explain({ ...request, place: { ...place, ...change } });
    t.regex(declined ?? '', /another namespace, journal or root/);
    t.is(explanation, undefined);
  }
  t.regex((await explainer.explain({ ...request, place: undefined })).declined ?? '', /another namespace/);
});

test('openExplainer: makes one explanation at a time, and declines what it cannot read', async (t) => {
  const { explainer, request } = scene(t);
  const [first, second] = await Promise.all([explainer.explain(request), explainer.explain(request)]);
  t.is(second.declined, 'another explanation is being made');
  // A damaged journal, or where it runs without rights: no explanation, and no exception.
  t.is(first.explanation, undefined);
  t.not(first.declined ?? '', '');
  t.not((await explainer.explain(request)).declined, 'another explanation is being made');
});
