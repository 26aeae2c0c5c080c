import { Counter, Gauge, type Registry } from 'prom-client';

/**
 * The result of a registration with kubelet. `silent`: kubelet accepted it and never asked for the devices; `unserved`:
 * our own socket cannot be created.
 */
export type RegistrationOutcome = 'registered' | 'refused' | 'unreachable' | 'silent' | 'unserved';

/** Metrics of the device plugin. */
export type DevicePluginMetrics = {
  deviceRegistration(outcome: RegistrationOutcome): void;
  devices(resource: string, healthy: number, unhealthy: number): void;
};

/** Adds the metrics of the device plugin to a registry. */
export function createDevicePluginMetrics(registry: Registry): DevicePluginMetrics {
  const registers = [registry];
  const registrations = new Counter({
    name: 'tke_eni_device_plugin_registrations_total',
    help: 'Registrations with kubelet, by outcome: registered, refused, unreachable, silent, unserved.',
    labelNames: ['outcome'],
    registers,
  });
  const devices = new Gauge({
    name: 'tke_eni_device_plugin_devices',
    help: 'Devices reported to kubelet, by resource and health.',
    labelNames: ['resource', 'health'],
    registers,
  });
  return {
    deviceRegistration: (outcome) => registrations.inc({ outcome }),
    devices: (resource, healthy, unhealthy) => {
      devices.set({ resource, health: 'healthy' }, healthy);
      devices.set({ resource, health: 'unhealthy' }, unhealthy);
    },
  };
}
