import test from 'ava';
import { findTaintOwner, readTaintSelector } from '../../../ipamd/config/taint-selector.ts';

const read = test.macro((t, text: string, expected: ReturnType<typeof readTaintSelector>) =>
  t.deepEqual(readTaintSelector(text), expected),
);
test('readTaintSelector: a key', read, 'example.com/boot', { key: 'example.com/boot' });
test('readTaintSelector: a key without domain', read, 'boot', { key: 'boot' });
test('readTaintSelector: key and effect', read, 'boot:NoExecute', { key: 'boot', effect: 'NoExecute' });
test('readTaintSelector: all three', read, 'a/b=c:NoSchedule', { key: 'a/b', value: 'c', effect: 'NoSchedule' });
test('readTaintSelector: an empty value', read, 'a/b=:NoSchedule', { key: 'a/b', value: '', effect: 'NoSchedule' });
for (const text of ['', 'a/', '/b', 'a/b:No', 'a b', 'a/b=c d', 'a/b/c', '*', 'a/*'])
  test(`readTaintSelector: not ${JSON.stringify(text)}`, read, text, undefined);

const owner = test.macro((t, key: string, expected: string | undefined) => t.is(findTaintOwner(key), expected));
test('findTaintOwner: control plane', owner, 'node-role.kubernetes.io/control-plane', 'Kubernetes');
test('findTaintOwner: not ready', owner, 'node.kubernetes.io/not-ready', 'Kubernetes');
test('findTaintOwner: uninitialized', owner, 'node.cloudprovider.kubernetes.io/uninitialized', 'Kubernetes');
test('findTaintOwner: scale down', owner, 'ToBeDeletedByClusterAutoscaler', 'cluster-autoscaler');
test('findTaintOwner: status', owner, 'status-taint.cluster-autoscaler.kubernetes.io/x', 'cluster-autoscaler');
test('findTaintOwner: Karpenter', owner, 'karpenter.sh/unregistered', 'Karpenter');
test('findTaintOwner: startup prefix', owner, 'startup-taint.cluster-autoscaler.kubernetes.io/x', undefined);
test('findTaintOwner: older prefix', owner, 'ignore-taint.cluster-autoscaler.kubernetes.io/x', undefined);
test('findTaintOwner: ours', owner, 'tke.cloud.tencent.com/eni-ip-unavailable', undefined);
test('findTaintOwner: a name that only looks like it', owner, 'notkubernetes.io/x', undefined);
