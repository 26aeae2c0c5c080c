import { findKubeAssets } from '../test/cluster/kube-assets.ts';
import { renderTable } from './render-table.ts';
import { type BenchRow, benchRow } from './row.ts';
import { describeSupply, measureScale, type Phase, type ScaleReport } from './scale/measure-scale.ts';
import { bytesOf, describeTraffic } from './scale/readings.ts';

const SUITE = 'scale';
const NODES = 200;
const PODS_PER_NODE = 30;

/**
 * Measures the packaged ipamd with hollow nodes of 30 Pods each on a real API server, or with SCALE_API=simulated on the
 * simulated one; SCALE_NODES says how many nodes, 200 by default, SCALE_EVERY_S how many seconds lie between two Pods of a
 * node, none by default, SCALE_FLAGS further flags of ipamd. Without the executables of Kubernetes there is no row, nor with
 * the simulated API server: what it costs is not what a real one does.
 */
export async function runSuite(): Promise<readonly BenchRow[]> {
  const { SCALE_NODES = NODES, SCALE_API, SCALE_EVERY_S = 0, SCALE_FLAGS = '' } = process.env;
  const flags = SCALE_FLAGS.split(' ').filter((flag) => flag !== '');
  const everyMs = Number(SCALE_EVERY_S) * 1000;
  const spec = { nodes: Number(SCALE_NODES), podsPerNode: PODS_PER_NODE, everyMs, flags };
  if (SCALE_API === 'simulated') {
    console.log(renderTable(rowsOf(await measureScale({ ...spec, assets: undefined }))));
    return [];
  }
  const { dir, missing } = findKubeAssets();
  if (missing.includes('kube-apiserver') || missing.includes('kube-controller-manager')) {
    console.error(`${SUITE}: not run: KUBE_ASSETS names no folder with the executables of Kubernetes`);
    return [];
  }
  return rowsOf(await measureScale({ ...spec, assets: dir }));
}

function rowsOf(report: ScaleReport): readonly BenchRow[] {
  const { nodes, pods, join, joinSupply, rest, churn, churned, churnSupply, restart, apiRestart } = report;
  const again =
    apiRestart === undefined ? '' : `, while the API server starts again ${apiRestart.phase.peakMib.toFixed(0)}`;
  const own = { suite: SUITE, peerName: 'bound' } as const;
  const size = `${nodes} nodes, ${pods} Pods`;
  return [
    benchRow({
      ...own,
      case: 'join-cpu',
      ours: join.usage.cpuS,
      peer: nodes * JOIN_CPU_S,
      unit: 's',
      extra: `${size} from nothing, with their records, in ${join.usage.seconds.toFixed(0)} s: ${((join.usage.cpuS / pods) * 1000).toFixed(1)} ms a Pod; ${describeSupply(joinSupply, pods)}; ${describe(join)}`,
    }),
    benchRow({
      ...own,
      case: 'memory-peak',
      ours: join.peakMib,
      peer: 250,
      unit: 'MiB',
      extra: `RssAnon; ${size}; at rest ${rest.memoryMib.toFixed(0)}, while it starts again ${restart.peakMib.toFixed(0)}${again}`,
    }),
    benchRow({
      ...own,
      case: 'rest-cpu',
      ours: (rest.usage.cpuS / rest.usage.seconds) * 100,
      peer: 10,
      unit: '%',
      extra: `of a processor for ${rest.usage.seconds.toFixed(0)} s in which nothing changes but what kubelets repeat; ${kilobytes(rest)} kB a second; ${describe(rest)}`,
    }),
    benchRow({
      ...own,
      case: 'pod-cpu-ms',
      ours: (churn.usage.cpuS / churned) * 1000,
      peer: 20,
      unit: 'ms',
      extra: `for each of ${churned} Pods that came while another went, its records included; ${(bytesOf(churn.usage) / churned / 1000).toFixed(0)} kB; ${describeSupply(churnSupply, churned)}; ${describe(churn)}`,
    }),
    benchRow({
      ...own,
      case: 'restart-warm',
      ours: report.restartWarmS,
      peer: 30,
      unit: 's',
      extra: `from the start of another ipamd until it leads and has read everything; ${describe(restart)}`,
    }),
    ...(apiRestart === undefined ? [] : [apiRestartRow(apiRestart)]),
  ];
}

function apiRestartRow({ warmS, phase }: NonNullable<ScaleReport['apiRestart']>): BenchRow {
  return benchRow({
    ...{ suite: SUITE, peerName: 'bound', case: 'api-restart-warm', ours: warmS, peer: 60, unit: 's' },
    extra: `from the API server's readiness until ipamd has read everything again; ${describe(phase)}`,
  });
}

/** CPU seconds of ipamd for a node that joins with 30 Pods. */
const JOIN_CPU_S = 0.6;

function kilobytes({ usage }: Phase): string {
  return (bytesOf(usage) / usage.seconds / 1000).toFixed(0);
}

function describe({ usage }: Phase): string {
  const { cpuS, serverCpuS, etcdCpuS } = usage;
  return `CPU of ipamd ${cpuS.toFixed(1)} s, API server ${serverCpuS.toFixed(1)} s, etcd ${etcdCpuS.toFixed(1)} s; ${describeTraffic(usage)}`;
}
