import test from 'ava';
import fc from 'fast-check';
import { buildEniRows } from '../../../../cli/commands/cluster/build-eni-rows.ts';
import { buildNodeRows, totalsOf } from '../../../../cli/commands/cluster/build-node-rows.ts';
import { buildSubnetRows } from '../../../../cli/commands/cluster/build-subnet-rows.ts';
import { findLeaks } from '../../../../cli/commands/cluster/find-leaks.ts';
import type { KubeObject } from '../../../../kube/kube-client.ts';
import { assertLaw } from '../../../support/law.ts';
import { claimObject, cloudEni, cloudOf, factsOf, necObject, nodeObject, podObject, vipObject } from './sample.ts';

/** How many addresses and how many Pods each node has; there are at most nine in the samples' numbering. */
const CLUSTERS = fc.array(fc.record({ ips: fc.nat(8), pods: fc.nat(8) }), { minLength: 1, maxLength: 9 });

type Shape = readonly { readonly ips: number; readonly pods: number }[];

function ipsOf(index: number, count: number): readonly string[] {
  return Array.from({ length: count }, (_, k) => `10.0.${index}.${10 + k}`);
}

function healthy(shape: Shape) {
  const objects = shape.flatMap(({ ips, pods }, at): readonly KubeObject[] => {
    const index = at + 1;
    const all = ipsOf(index, ips);
    return [
      necObject(index, all),
      nodeObject(`n${index}`),
      ...all.slice(0, pods).flatMap((ip, k) => {
        const name = `p-${index}-${k}`;
        return [podObject(name, `n${index}`, [ip]), vipObject(ip, name, index), claimObject(name)];
      }),
    ];
  });
  const cloud = cloudOf(shape.map(({ ips }, at) => cloudEni(at + 1, ipsOf(at + 1, ips))));
  return { objects, cloud };
}

test('findLeaks: finds nothing in whatever cluster is whole', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(CLUSTERS, (shape) => {
      const { objects, cloud } = healthy(shape);
      t.deepEqual(findLeaks(factsOf(objects, cloud), 0), { findings: [], unseen: [] });
    }),
  );
});

test('findLeaks: finds the one thing that is taken out of a whole cluster', async (t) => {
  const victims = ['Pod', 'VpcIP', 'VpcIPClaim', 'Node', 'NodeENIConfig'] as const;
  await assertLaw(t, (t) =>
    fc.property(CLUSTERS, fc.constantFrom(...victims), fc.nat(), (shape, kind, at) => {
      const { objects, cloud } = healthy(shape);
      const candidates = objects.filter((object) => object.kind === kind);
      fc.pre(candidates.length > 0);
      const victim = candidates[at % candidates.length];
      const { findings } = findLeaks(
        factsOf(
          objects.filter((one) => one !== victim),
          cloud,
        ),
        0,
      );
      const ids = new Set(findings.map(({ id }) => id));
      // A record of a living Pod that is not there yet is nobody's loss; without its Pod two records are left.
      const wanted = { Pod: ['record-without-pod'], VpcIP: [], VpcIPClaim: [], Node: ['node-config-stray'] } as const;
      if (kind !== 'NodeENIConfig') {
        t.deepEqual([...ids], [...wanted[kind]]);
        return;
      }
      t.true(ids.has('eni-orphaned'));
      const had = shape[Number(victim?.metadata.name.slice(1)) - 1];
      t.is(ids.has('pod-address-unlisted'), Math.min(had?.ips ?? 0, had?.pods ?? 0) > 0);
      t.deepEqual(
        [...ids].filter((id) => id !== 'eni-orphaned' && id !== 'pod-address-unlisted'),
        [],
      );
    }),
  );
});

test('views: agree on how many addresses there are and how many are used', async (t) => {
  await assertLaw(t, (t) =>
    fc.property(CLUSTERS, (shape) => {
      const { objects, cloud } = healthy(shape);
      const facts = factsOf(objects, cloud);
      const totals = totalsOf(buildNodeRows(facts, 0));
      const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);
      const used = sum(shape.map(({ ips, pods }) => Math.min(ips, pods)));
      t.like(totals, { assigned: sum(shape.map(({ ips }) => ips)), used, free: totals.assigned - used });
      const enis = buildEniRows(facts);
      t.is(sum(enis.map(({ assigned }) => assigned)), totals.assigned);
      t.is(sum(enis.map((eni) => eni.used ?? 0)), used);
      // Each ENI has an address of its own besides.
      t.is(sum(buildSubnetRows(facts).map(({ ours }) => ours)), totals.assigned + shape.length);
    }),
  );
});
