import type { SeenRequest } from '../../../sim/vpc/api/host.ts';
import { heading, table, wrapText } from './format.ts';
import { awaitPods, awaitSpare, createPods } from './scene.ts';
import { type Stage, secondsSince } from './stage.ts';

const PODS = { n1: ['web-3', 'web-4'], n2: ['db-5'] } as const;
const REFUSED = 'RequestLimitExceeded';
/** Of all calls. */
const SHARE = 0.55;

/** The cloud refuses most calls: they are made again, more and more slowly, and Pods get their addresses all the same. */
export async function throttleCloud(stage: Stage): Promise<void> {
  const { system, progress, print, fault } = stage;
  const { host } = system.cloud;
  const names = Object.values(PODS).flat();
  progress(`act 2: more than half of all cloud calls are refused; ${names.length} Pods more`);
  print(heading('Act 2: the cloud throttles'));
  print(
    `${wrapText(`More than half of all calls are answered ${REFUSED}. Meanwhile come ${names.join(', ')}.`, '  ')}\n`,
  );
  host.forget();
  const startMs = performance.now();
  const recover = host.faults.add({ fault: { kind: 'error', code: REFUSED }, probability: SHARE });
  for (const [node, ofNode] of Object.entries(PODS)) await createPods(system, node, ofNode);
  const pods = await awaitPods(system, names);
  const took = secondsSince(startMs);
  progress(`act 2: all run after ${took}`);
  const seen = [...host.seen];
  print(callTable(seen, await allowedRates(stage)));
  recover();
  print('  (allowed: calls a second that ipamd holds itself to, from its metrics)\n');
  const which = pods.map((pod) => `${pod.name} with ${pod.ip}`).join(', ');
  print(wrapText(`Recovery: by itself. All run ${took} after they were created, still throttled: ${which}.`, '  '));
  // The next act begins from rest: only what it does itself is under way then.
  await awaitSpare(system);
  if (!seen.some(({ code }) => code === REFUSED)) fault('act 2: no call was refused');
}

function callTable(seen: readonly SeenRequest[], rates: ReadonlyMap<string, number>): string {
  const rows = [...new Set(seen.map(({ action }) => action))].toSorted().map((action) => {
    const calls = seen.filter((call) => call.action === action);
    const refused = calls.filter(({ code }) => code === REFUSED).length;
    const allowed = rates.get(action)?.toFixed(1) ?? '';
    return [action, String(calls.length), String(refused), String(calls.length - refused), allowed];
  });
  const whole = ['all of the VPC product', ...['', '', ''], rates.get('')?.toFixed(1) ?? ''];
  return table([['API', 'CALLS', 'REFUSED', 'ANSWERED', 'ALLOWED/S'], ...rows, whole]);
}

/** What the leader's metrics say of its pacing, by API; under '' for the product as a whole. */
async function allowedRates({ system }: Stage): Promise<ReadonlyMap<string, number>> {
  const text = await (await system.leader()).awaitHttp('/metrics');
  const lines = text.matchAll(/^tke_eni_ipamd_cloud_rate_allowed\{product="vpc",action="(\w*)"\} (\S+)$/gm);
  return new Map([...lines].map(([, action = '', rate]) => [action, Number(rate)]));
}
