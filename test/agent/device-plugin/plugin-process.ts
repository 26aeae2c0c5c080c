import { startDevicePlugin } from '../../../agent/device-plugin/device-plugin.ts';
import { openKubelet } from '../../../agent/device-plugin/kubelet.ts';
import { createMetrics } from '../../../agent/observability/metrics.ts';
import { runInBackground } from '../../../runtime/background.ts';
import { ChangeSignal } from '../../../runtime/change-signal.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';

// A plugin that can be killed: `node plugin-process.ts <kubelet's folder> <devices>`.
const [kubeletDir = '', quota = '0'] = process.argv.slice(2);
startDevicePlugin({
  ...{
    kubelet: openKubelet(kubeletDir),
    clock: systemClock,
    log: silentLogger,
    random: seededRandom(1),
    node: undefined,
  },
  background: runInBackground,
  changes: [new ChangeSignal(systemClock)],
  resources: [
    {
      name: 'tke.cloud.tencent.com/eni-ip',
      prefix: 'eni-ip',
      socketName: 'tke-eni-ip.sock',
      count: () => ({ quota: Number(quota), allocatable: undefined, assigned: 0, inUse: 0, stranded: 0 }),
    },
  ],
  metrics: createMetrics(),
  events: { report: () => {} },
});
setInterval(() => {}, 60_000);
