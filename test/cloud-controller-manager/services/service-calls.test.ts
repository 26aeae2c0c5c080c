import test from 'ava';
import { measureServices } from './measure-services.ts';

test('service-lb-controller: many Services at a start take the fewest calls, a restart writes nothing, a Pod is one write', async (t) => {
  const services = 40;
  const report = await measureServices(services, 3, 2);
  const { CreateLoadBalancer, CreateListener, BatchRegisterTargets, DescribeTaskStatus = 0 } = report.coldCalls;
  t.deepEqual({ CreateLoadBalancer, CreateListener, BatchRegisterTargets }, each(services));
  t.true(DescribeTaskStatus <= 3 * services, `${DescribeTaskStatus} polls`);
  t.is(report.restartWrites, 0);
  t.is(report.changeWrites, 1);
});

function each(services: number) {
  return { CreateLoadBalancer: services, CreateListener: services, BatchRegisterTargets: services };
}
