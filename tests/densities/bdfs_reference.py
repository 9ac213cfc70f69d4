"""The transition density of the BDFS model in many digits, another way than the package: Frobenius series, a straight contour.

With t the time to go, ``z = e^{-k3 t}`` and eta the conjugate of y, the variance is killed at the rate ``q V``,
``q = -eta c z - eta^2 r z^2 / 2``, ``c = rho (k1 - k3) / sigma1``, ``r = 1 - rho^2``. The fundamental solutions of
``phi'' + k1 phi' = (sigma1^2 / 2) q phi`` are power series in z times 1 and ``z^{k1 / k3}``, and the killed density is, with
``a = 2 v / sigma1^2``, ``d = 2 k1 alpha1 / sigma1^2``,

    (2 / sigma1^2) phi_2^{-d} e^{-a0 phi_2'/phi_2 - a1 phi_1/phi_2} a1^{d-1} 0F1(d; a0 a1 e^{-k1 dt} / phi_2^2) / Gamma(d) .
"""

import mpmath as mp

DIGITS = (70, 120, 200, 320)
"""The series cancel, the more the shorter the gap and the lower the variance: more digits are taken until enough are left."""
LOST = 1e-25
"""Largest relative error of the Wronskian, which is -k1 (Abel), at which they are."""
STEP, FINE = 0.06, 0.02
"""Of the trapezoidal rule: what is enough over the law of the paper, and where the integrand is narrow between slow tails."""


def log_density_mp(x1, x0, dt, p, step=STEP):
    """log p(x1 | x0) as an mpf of some 14 digits."""
    for digits in DIGITS:
        with mp.workdps(digits):
            try:
                return _log_density(step, *(mp.mpf(float(a)) for a in (*x1, *x0, dt, *p)))
            except TooFewDigitsError:
                continue
    raise TooFewDigitsError(f"The series lose all of {DIGITS[-1]} digits at x1 = {x1}, x0 = {x0}, dt = {dt}, p = {p}.")


class TooFewDigitsError(ArithmeticError):
    """The series have cancelled."""


def _log_density(step, v1, o1, y1, v0, o0, y0, dt, k1, alpha1, sigma1, k2, alpha2, sigma2, k3, rho):
    decay, clock = mp.exp(-k3 * dt), (1 - mp.exp(-k3 * dt)) / k3
    mean, variance, log_density = _pull(o1, o0, dt, k2, alpha2, sigma2, k3)
    distance = y1 - y0 * decay - mean - rho / sigma1 * (v1 - v0 * decay - k1 * alpha1 * clock)
    killed = _killed(v1, v0, dt, k1, alpha1, sigma1, k3, rho)

    def exponent(eta, previous=None):
        log, angle = killed(eta, previous)
        return log - eta * distance + eta**2 * variance / 2, angle

    unit = mp.sqrt(1 / (variance + (1 - rho**2) * clock**2 / dt * (v0 + v1) / 2))
    saddle = _lowest(lambda eta: exponent(eta)[0].real, unit)
    top, h = exponent(saddle)[0].real, unit / 1000
    curvature = (exponent(saddle + h)[0].real + exponent(saddle - h)[0].real - 2 * top) / h**2
    width = 1 / mp.sqrt(curvature)
    total, angle, t = mp.mpf(1) / 2, mp.mpf(0), mp.mpf(0)
    while True:
        t += step
        value, angle = exponent(saddle + 1j * width * mp.sinh(t), angle)
        total += (mp.exp(value - top) * mp.cosh(t)).real
        if value.real - top < -38:
            break
    return log_density + top + mp.log(total * width * step / mp.pi)


def _pull(o1, o0, dt, k2, alpha2, sigma2, k3):
    """Mean and variance of int k3 e^{-k3 t} O given both ends of O, and the log density of the latter."""

    def integral(a):
        return (1 - mp.exp(-a * dt)) / a

    f = k3 / (k3 - k2)
    own = sigma2**2 * integral(2 * k2)
    both = sigma2**2 * f * (integral(2 * k2) - integral(k2 + k3))
    passed = sigma2**2 * f**2 * (integral(2 * k2) - 2 * integral(k2 + k3) + integral(2 * k3))
    surprise = o1 - alpha2 - (o0 - alpha2) * mp.exp(-k2 * dt)
    response = f * (mp.exp(-k2 * dt) - mp.exp(-k3 * dt))
    mean = alpha2 * (1 - mp.exp(-k3 * dt)) + response * (o0 - alpha2) + both / own * surprise
    return mean, passed - both**2 / own, -(surprise**2 / own + mp.log(2 * mp.pi * own)) / 2


def _killed(v1, v0, dt, k1, alpha1, sigma1, k3, rho):
    """The log of the killed density at eta, the argument of phi_2 continued from `previous`; +inf at real eta beyond a zero."""
    c, r = rho * (k1 - k3) / sigma1, 1 - rho**2
    a0, a1, d = 2 * v0 / sigma1**2, 2 * v1 / sigma1**2, 2 * k1 * alpha1 / sigma1**2
    last = mp.exp(-k3 * dt)

    def series(s, eta):
        """Value and slope in t at z = 1 and z = e^{-k3 dt} of the solution z^s sum_n c_n z^n."""
        linear, square = -eta * c * sigma1**2 / 2 / k3**2, -(eta**2) * r * sigma1**2 / 4 / k3**2
        coefficients, n = [mp.mpc(1)], 0
        while n < 12 or abs(coefficients[-1]) + abs(coefficients[-2]) > mp.mpf(10) ** (-mp.mp.dps - 8):
            n += 1
            force = linear * coefficients[-1] + (square * coefficients[-2] if n > 1 else 0)
            coefficients.append(force / ((s + n) ** 2 - k1 / k3 * (s + n)))
        out = []
        for z in (mp.mpf(1), last):
            powers = [z**m for m in range(n + 1)]
            value = mp.fdot(coefficients, powers)
            slope = mp.fsum((s + m) * a * b for m, (a, b) in enumerate(zip(coefficients, powers, strict=True)))
            out.append((z**s * value, -k3 * z**s * slope))
        return out

    def log_killed(eta, previous=None):
        (f0, f0s), (f1, f1s) = series(mp.mpf(0), eta)
        (g0, g0s), (g1, g1s) = series(k1 / k3, eta)
        wronskian = f0 * g0s - f0s * g0
        if not abs(wronskian / k1 + 1) < LOST:
            raise TooFewDigitsError
        phi2, phi2s = (f0 * g1 - g0 * f1) / wronskian, (f0 * g1s - g0 * f1s) / wronskian
        phi1 = (g0s * f1 - f0s * g1) / wronskian
        if previous is None and phi2.real <= 0:
            return mp.mpc(mp.inf), mp.mpf(0)
        angle = mp.arg(phi2)
        angle += 2 * mp.pi * mp.nint(((previous or 0) - angle) / (2 * mp.pi))
        log_phi2 = mp.log(abs(phi2)) + 1j * angle
        bessel = mp.hyp0f1(d, a0 * a1 * mp.exp(-k1 * dt) / phi2**2)
        log = mp.log(bessel) - d * log_phi2 - a0 * phi2s / phi2 - a1 * phi1 / phi2
        return log + (d - 1) * mp.log(a1) - mp.loggamma(d) + mp.log(2 / sigma1**2), angle

    return log_killed


def _lowest(f, scale):
    """Where a convex function of a real argument, +inf outside an interval around 0, is lowest; to a percent of its width."""
    low, high, step = mp.mpf(0), mp.mpf(0), scale
    while f(high + step) < f(high):
        high, step = high + step, 2 * step
    high, step = high + step, scale
    while f(low - step) < f(low):
        low, step = low - step, 2 * step
    low = low - step
    for _ in range(60):
        a, b = low + (high - low) * mp.mpf("0.382"), low + (high - low) * mp.mpf("0.618")
        fa, fb = f(a), f(b)
        if max(fa, fb) < mp.inf and abs(fa - fb) < mp.mpf("1e-3") and high - low < scale:
            break
        low, high = (low, b) if fa < fb else (a, high)
    return (low + high) / 2
