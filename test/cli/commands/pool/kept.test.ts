import test from 'ava';
import { ADDRESS_STATE } from '../../../../agent/api/ops-messages.ts';
import { buildAgentPool } from '../../../../cli/commands/pool/build-agent-pool.ts';
import { buildJournalPool } from '../../../../cli/commands/pool/build-journal-pool.ts';
import { renderPool } from '../../../../cli/commands/pool/render-pool.ts';
import { createTempDir } from '../../../support/temp-dir.ts';
import { runCaptured } from '../../agent/captured.ts';
import { startFakeAgent } from '../../agent/fake-agent.ts';
import { JOURNAL_SAMPLE, POOL_SAMPLE, SUMMARY_SAMPLE } from '../../agent/samples.ts';

const WEB_0 = { namespace: 'shop', name: 'web-0' };

test('pool: shows kept addresses as KEPT, with whose they are', async (t) => {
  const dir = createTempDir('kept');
  const kept = {
    ip: '10.0.2.200',
    family: 4,
    eniId: 'eni-aaaa1111',
    state: ADDRESS_STATE.ADDRESS_STATE_KEPT,
    keptFor: 'shop/web-0',
    keptUid: '',
    runtimeHandler: '',
  };
  const pool = { ...POOL_SAMPLE, addresses: [...(POOL_SAMPLE.addresses ?? []), kept] };
  const agent = await startFakeAgent(dir.join('agent.sock'), { pool, summary: SUMMARY_SAMPLE });
  t.teardown(() => {
    agent.close();
    dir.close();
  });
  const line = ['pool', '--socket', dir.join('agent.sock')];
  const { stdout, stderr } = await runCaptured(line, { columns: 160 });
  t.is(stderr, '');
  t.regex(stdout, /\bKEPT\b/);
  t.regex(stdout, /^10\.0\.2\.200 +shop\/web-0 +kept +- /m);
  const document = JSON.parse((await runCaptured([...line, '-o', 'json'])).stdout);
  t.like(document.addresses.at(-1), { ip: '10.0.2.200', use: 'kept', keptFor: { pods: 'shop/web-0' } });
});

test('buildAgentPool: an agent that knows no kept addresses has none', (t) => {
  const blank = {
    containerId: '',
    ifName: '',
    podNamespace: '',
    podName: '',
    coolRemainingMs: 0,
    keptFor: '',
    keptUid: '',
    runtimeHandler: '',
  };
  const address = {
    ...blank,
    ...{ ip: '10.0.2.9', family: 4, eniId: 'eni-1', assignmentId: 'a', unlisted: false, pairedIp: '' },
    state: ADDRESS_STATE.ADDRESS_STATE_FREE,
  };
  const reply = {
    ...{ addresses: [address], enis: [], warmMin: 0, warmMax: 0, limit: 0, demand: 0, waiting: [], supplyEpoch: 0 },
    ...{ supplyProblem: '', families: [4], hasSupply: true, cooldownMs: 0, agentVersion: '' },
  };
  const view = buildAgentPool(reply, 'n1');
  t.is(view.addresses[0]?.keptFor, undefined);
  t.notRegex(renderPool(view, { width: 200, isColored: false }), /KEPT/);
});

test('buildJournalPool: tells kept addresses by their marks', (t) => {
  const enis = (JOURNAL_SAMPLE.supply?.enis ?? []).map((eni) => ({
    ...eni,
    addresses: eni.addresses.map((one) => (one.ip === '10.0.2.11' ? { ...one, claim: { ...WEB_0, uid: 'u1' } } : one)),
  }));
  const { supply } = JOURNAL_SAMPLE;
  if (supply === undefined) throw new Error('the sample has a supply');
  const view = buildJournalPool({ ...JOURNAL_SAMPLE, supply: { ...supply, enis } }, [], 22_000);
  t.like(
    view.addresses.find(({ ip }) => ip === '10.0.2.11'),
    { use: 'kept', keptFor: { pods: 'shop/web-0', uid: 'u1' } },
  );
});
