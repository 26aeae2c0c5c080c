import { join } from 'node:path';
import type { CallLimits } from '../grpc/unary-call.ts';
import { listAllocated } from './kubelet-client.ts';
import { maintainRegistration, type RegistrationDeps } from './maintain-registration.ts';
import { openPluginEndpoint, type PluginEndpoint } from './plugin-endpoint.ts';

/** The kubelet of a machine, as a device plugin meets it. */
export type Kubelet = {
  /**
   * Opens what kubelet asks for the devices of one resource; it does not listen yet.
   * @param changed called when kubelet begins or ends to watch
   */
  openEndpoint(socketName: string, changed: () => void): PluginEndpoint;
  /** Keeps a resource registered with the kubelet that runs, until aborted. Never rejects. */
  maintainRegistration(deps: Omit<RegistrationDeps, 'directory'>, signal: AbortSignal): Promise<void>;
  /** Reads which devices of a resource Pods hold. @throws KubeletError; the reason of the signal when aborted */
  listAllocated(resource: string, limits: CallLimits): Promise<ReadonlySet<string>>;
};

/** Opens the kubelet whose folder this is; usually `/var/lib/kubelet`. */
export function openKubelet(folder: string): Kubelet {
  const directory = join(folder, 'device-plugins');
  const podResources = join(folder, 'pod-resources', 'kubelet.sock');
  return {
    openEndpoint: (socketName, changed) => openPluginEndpoint(join(directory, socketName), changed),
    maintainRegistration: (deps, signal) => maintainRegistration({ ...deps, directory }, signal),
    listAllocated: (resource, limits) => listAllocated(podResources, resource, limits),
  };
}
