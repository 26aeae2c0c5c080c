import test from 'ava';
import {
  collected,
  counter,
  gauge,
  histogram,
  type MetricRows,
  openMetrics,
  subjects,
  termGauge,
} from '../../../runtime/metrics/metric-table.ts';

const ROWS = {
  calls: counter('calls_total', 'Calls.', 'action'),
  faults: counter('faults_total', 'Faults.'),
  took: histogram('call_seconds', 'Time of a call.', [1, 2], 'action'),
  pool: gauge('pool', 'Addresses.', 'state'),
  leases: gauge('leases', 'Leases.'),
  orphans: termGauge('orphans', 'Orphans.'),
  blocks: termGauge('blocks', 'Blocks.', 'state'),
  held: subjects('held', 'Nodes that are held.', 'reason'),
  isOpen: collected('open', '1 while it is open.', [], ({ isOpen }) => isOpen),
  queues: collected('queues', 'Keys.', ['queue'], ({ queues }) => queues.map(([queue, keys]) => [{ queue }, keys])),
  upstream: { ...counter('sync_total', 'As upstream.'), prefix: 'route_controller_' },
} satisfies MetricRows<{ isOpen?: boolean; queues: readonly (readonly [string, number])[] }>;

function open() {
  const state: Parameters<typeof ROWS.queues.collect>[0] = { queues: [] };
  const metrics = openMetrics({ prefix: 't_', rows: ROWS }, state);
  const scrape = async (name: string): Promise<readonly string[]> => {
    const lines = (await metrics.registry.metrics()).split('\n');
    return lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length).trim());
  };
  return { metrics, state, scrape };
}

test('openMetrics: counts by label; without labels it begins at 0', async (t) => {
  const { metrics, scrape } = open();
  metrics.calls.inc({ action: 'a' });
  metrics.calls.inc({ action: 'a' }, 2);
  t.deepEqual(await scrape('t_calls_total'), ['{action="a"} 3']);
  t.deepEqual(await scrape('t_faults_total'), ['0']);
  metrics.faults.inc();
  t.deepEqual(await scrape('t_faults_total'), ['1']);
});

test('openMetrics: a histogram gets milliseconds and has seconds', async (t) => {
  const { metrics, scrape } = open();
  metrics.took.observeMs({ action: 'a' }, 1500);
  t.deepEqual(await scrape('t_call_seconds_sum'), ['{action="a"} 1.5']);
  t.deepEqual(await scrape('t_call_seconds_bucket'), [
    '{le="1",action="a"} 0',
    '{le="2",action="a"} 1',
    '{le="+Inf",action="a"} 1',
  ]);
});

test('openMetrics: replaced samples are the only ones', async (t) => {
  const { metrics, scrape } = open();
  metrics.pool.set({ state: 'free' }, 3);
  metrics.pool.replace([[{ state: 'leased' }, 2]]);
  t.deepEqual(await scrape('t_pool'), ['{state="leased"} 2']);
  metrics.pool.remove({ state: 'leased' });
  t.deepEqual(await scrape('t_pool'), []);
});

test('openMetrics: subjects are counted by what was set last, each once for a value', async (t) => {
  const { metrics, scrape } = open();
  metrics.held.set('n1', ['Gone', 'Gone', 'Slow']);
  metrics.held.set('n2', ['Gone']);
  t.deepEqual(await scrape('t_held'), ['{reason="Gone"} 2', '{reason="Slow"} 1']);
  metrics.held.set('n1', []);
  t.deepEqual(await scrape('t_held'), ['{reason="Gone"} 1']);
});

test('openMetrics: what is collected is read at each scrape', async (t) => {
  const { state, scrape } = open();
  t.deepEqual([await scrape('t_open'), await scrape('t_queues')], [['0'], []]);
  state.isOpen = true;
  state.queues = [['nodes', 4]];
  t.deepEqual([await scrape('t_open'), await scrape('t_queues')], [['1'], ['{queue="nodes"} 4']]);
  state.queues = [];
  t.deepEqual(await scrape('t_queues'), []);
});

test('openMetrics: after a term the gauges of a leader are empty, and others stay', async (t) => {
  const { metrics, scrape } = open();
  metrics.orphans.set(2);
  metrics.blocks.set({ state: 'free' }, 5);
  metrics.held.set('n1', ['Gone']);
  metrics.leases.set(7);
  metrics.clearTerm();
  t.deepEqual(await scrape('t_orphans'), ['0']);
  t.deepEqual([...(await scrape('t_blocks')), ...(await scrape('t_held'))], []);
  t.deepEqual(await scrape('t_leases'), ['7']);
});

test('openMetrics: a metric of an upstream program has its name', async (t) => {
  const { metrics, scrape } = open();
  metrics.upstream.inc();
  t.deepEqual(await scrape('route_controller_sync_total'), ['1']);
});
