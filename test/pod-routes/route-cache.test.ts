import test from 'ava';
import type { VpcRoute } from '../../cloud/cloud.ts';
import { RouteCache } from '../../pod-routes/route-cache.ts';
import { VirtualClock } from '../support/virtual-clock.ts';

const CONTEXT = { priority: 'gc' as const, owner: 'test', signal: new AbortController().signal };
const route = (routeId: string, cidr: string): VpcRoute => ({ routeId, cidr, gatewayIp: '10.0.0.1', description: '' });
const A = route('gr-a', '172.16.0.0/24');
const B = route('gr-b', '172.16.1.0/24');

function openCache() {
  const clock = new VirtualClock();
  const cache = new RouteCache(clock);
  const list = (routes: readonly VpcRoute[], isConsistent = true) => {
    return cache.refresh({ list: async () => ({ routes, isConsistent }) }, 'vpc-1', CONTEXT);
  };
  const ids = () => cache.routes().map(({ routeId }) => routeId);
  return { clock, cache, list, ids };
}

test('RouteCache: own changes outweigh a description that does not have them yet, for a minute', async (t) => {
  const { clock, cache, list, ids } = openCache();
  await list([A]);
  cache.noteDeleted('gr-a');
  cache.noteCreated(B);
  t.deepEqual(ids(), ['gr-b']);
  await list([A]);
  t.deepEqual(ids(), ['gr-b'], 'the list is from before both');
  await clock.advance(61_000);
  await list([A]);
  t.deepEqual(ids(), ['gr-a'], 'somebody undid both');
});

test('RouteCache.view: a block is free when no route overlaps it; a creation without an answer counts', async (t) => {
  const { clock, cache, list } = openCache();
  t.is(cache.view(), undefined, 'before the first list');
  await list([A], false);
  t.is(cache.view(), undefined, 'not all were listed');
  await list([A]);
  const has = (cidr: string) => cache.view()?.hasRoute(cidr);
  t.deepEqual(['172.16.0.0/24', '172.16.0.128/25', '172.16.0.0/16', '172.16.1.0/24'].map(has), [
    true,
    true,
    true,
    false,
  ]);
  cache.noteUnclear('172.16.1.0/24');
  t.true(has('172.16.1.0/24'));
  await list([A]);
  t.true(has('172.16.1.0/24'), 'it may still happen');
  await clock.advance(61_000);
  await list([A]);
  t.false(has('172.16.1.0/24'));
  t.is(cache.view()?.readMs, 61_000);
});

test('RouteCache.isDue: a list is read again when it is old, and at once after a call without an answer', async (t) => {
  const { clock, cache, list } = openCache();
  t.true(cache.isDue(15_000));
  await list([]);
  t.false(cache.isDue(15_000));
  await clock.advance(15_000);
  t.true(cache.isDue(15_000));
  await list([]);
  cache.noteUnclear('172.16.1.0/24');
  t.true(cache.isDue(15_000));
  await list([], false);
  t.true(cache.isDue(Number.POSITIVE_INFINITY), 'some may be missing');
});
