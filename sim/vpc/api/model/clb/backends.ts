import { ApiError } from '../api-error.ts';
import type { CloudState } from '../state.ts';
import type { ModelEni } from '../types.ts';
import type { ModelLoadBalancer, ModelTarget } from './types.ts';

/** What a target is, apart from how it is bound. */
type Backend = Pick<ModelTarget, 'ip' | 'type' | 'instanceId' | 'eniId' | 'zone'>;

/** What stands behind addresses and instances, for the targets of one request. */
export class Backends {
  readonly #state: CloudState;
  readonly #balancer: ModelLoadBalancer;
  /** ENIs by address; made when it is first asked for. */
  #enis: Map<string, ModelEni> | undefined;

  constructor(state: CloudState, balancer: ModelLoadBalancer) {
    this.#state = state;
    this.#balancer = balancer;
  }

  /** The primary address of an instance of the VPC. @throws ApiError */
  ofInstance(instanceId: string): Backend {
    const instance = this.#state.instances.get(instanceId);
    if (instance === undefined || instance.vpcId !== this.#balancer.vpcId) {
      throw new ApiError('InvalidParameterValue', `The instance ${instanceId} does not exist in the VPC.`);
    }
    const eni = this.#state.enisOf(instanceId).find(({ isPrimary }) => isPrimary);
    const ip = [...(eni?.ips.values() ?? [])].find(({ isPrimary }) => isPrimary)?.ip;
    if (eni === undefined || ip === undefined) {
      throw new ApiError('InvalidParameterValue', `The instance ${instanceId} has no address.`);
    }
    return { ip, type: 'CVM', instanceId, eniId: eni.eniId, zone: instance.zone };
  }

  /**
   * What an address is: that of an ENI that is bound to an instance, that of a network that the VPC routes to a node where
   * the account takes those, or with SnatPro any private address. @throws ApiError
   */
  ofIp(ip: string): Backend {
    const parts = /^\d+\.\d+\.\d+\.\d+$/.test(ip) ? ip.split('.').map(Number) : [];
    if (parts.length !== 4 || parts.some((part) => part > 255)) {
      throw new ApiError('InvalidParameterValue', `EniIp ${ip} is no IPv4 address.`);
    }
    const eni = this.#eniOf(ip);
    if (eni !== undefined) return this.#ofEni(eni, ip);
    if (this.#state.clb.spec.takesRoutedTargets === true && this.#isRouted(parts)) return { ip, type: 'GLOBALROUTE' };
    if (this.#balancer.snatPro && isPrivate(parts)) return { ip, type: 'CCN' };
    throw new ApiError('InvalidParameterValue', `EniIp ${ip} is no address of an ENI of the VPC.`);
  }

  #ofEni(eni: ModelEni, ip: string): Backend {
    const instanceId = eni.attachment?.instanceId;
    if (instanceId === undefined || eni.state !== 'AVAILABLE' || eni.ips.get(ip)?.state !== 'AVAILABLE') {
      throw new ApiError('InvalidParameterValue', `EniIp ${ip}: the ENI ${eni.eniId} is not bound to an instance.`);
    }
    const isNode = eni.isPrimary && eni.ips.get(ip)?.isPrimary === true;
    return { ip, type: isNode ? 'CVM' : 'ENI', instanceId, eniId: eni.eniId, zone: eni.zone };
  }

  #eniOf(ip: string): ModelEni | undefined {
    this.#enis ??= new Map(
      [...this.#state.enis.values()]
        .filter(({ vpcId }) => vpcId === this.#balancer.vpcId)
        .flatMap((eni) => [...eni.ips.keys()].map((one) => [one, eni] as const)),
    );
    return this.#enis.get(ip);
  }

  #isRouted(parts: readonly number[]): boolean {
    return [...this.#state.globalRoutes.values()].some(
      ({ cidr, vpcId }) => vpcId === this.#balancer.vpcId && covers(cidr, numberOf(parts)),
    );
  }
}

function covers(cidr: string, ip: number): boolean {
  const [address = '', length = '32'] = cidr.split('/');
  const size = 2 ** (32 - Number(length));
  return Math.floor(numberOf(address.split('.').map(Number)) / size) === Math.floor(ip / size);
}

function numberOf(parts: readonly number[]): number {
  return parts.reduce((sum, part) => sum * 256 + part, 0);
}

function isPrivate([a = 0, b = 0]: readonly number[]): boolean {
  return a === 10 || (a === 172 && b >= 16 && b < 32) || (a === 192 && b === 168);
}
