// Long: the kernel calls an answered UDP flow a stream only after 2 s, and nothing shortens that.
import test from 'ava';
import { establishFlows } from '../../../bench/forwarding/flow.ts';
import { egress, egressBatched, ingress, roundTrip } from '../../../bench/forwarding/measures.ts';
import { openPath, type Path } from '../../../bench/forwarding/path.ts';

test.serial(
  'flows of the forwarding benchmark: assured before anything is measured, and every measure has figures',
  async (t) => {
    const paths: Path[] = [];
    try {
      paths.push(await openPath({ kind: 'ours', ruleMode: 'compact', pods: 2 }));
      paths.push(await openPath({ kind: 'ours', ruleMode: 'compact', pods: 2, fastPath: 'bpf' }));
      paths.push(await openPath({ kind: 'plain', isTracked: true, hasIdleRule: true }));
      paths.push(await openPath({ kind: 'plain', isTracked: false }));
      const flows = paths.flatMap((path) => Object.values(path.flows));
      const [first] = flows;
      first?.exchange();
      t.throws(() => first?.assertAssured(), { message: /is not assured: .*dport=9001/ });
      await establishFlows(flows);
      t.deepEqual(
        paths.map(({ learned }) => learned?.()),
        [undefined, 6, undefined, undefined],
        'both directions of three flows are learned',
      );
      for (const path of paths) {
        for (const measure of [egress, egressBatched, ingress, roundTrip]) t.true(measure(path, 2) > 0);
      }
      const { egress: flow } = (paths[0] as Path).flows;
      const before = flow.arrived();
      flow.exchange();
      t.is(flow.arrived(), before + 1);
    } finally {
      for (const path of paths) path.close();
    }
  },
);
