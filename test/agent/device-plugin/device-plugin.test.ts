import test from 'ava';
import { ENI_IP, openScene, told } from './plugin-scene.ts';

test('startDevicePlugin: tells the devices to a kubelet that was there before', async (t) => {
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  scene.plugin();
  const devices = await told(kubelet, 9);
  t.deepEqual(new Set(devices.map(({ health }) => health)), new Set(['Healthy']));
  t.is(devices[0]?.ID, 'eni-ip-0');
  const [registration] = kubelet.registrations;
  t.like(registration?.request, {
    version: 'v1beta1',
    endpoint: 'tke-eni-ip.sock',
    resource_name: ENI_IP,
    options: { pre_start_required: false, get_preferred_allocation_available: false },
  });
});

test('startDevicePlugin: waits for a kubelet, and for its folder', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  await told(await scene.kubelet(), 9);
  t.pass();
});

test('startDevicePlugin: answers admissions', async (t) => {
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  scene.plugin();
  await told(kubelet, 9);
  const allocated = await kubelet.ask(ENI_IP, 'Allocate', {
    container_requests: [{ devices_ids: ['eni-ip-2'] }, { devices_ids: ['eni-ip-3'] }],
  });
  t.is((allocated['container_responses'] as readonly unknown[]).length, 2);
});
