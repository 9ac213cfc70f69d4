"""Heston's transition density by two routes that share no code with the library: mpmath, and a two-dimensional inversion."""

import mpmath as mp
import numpy as np


def log_density_mp(x1, x0, dt, p, digits=34):
    """Inversion with the unscaled Bessel function as a hypergeometric series, on a straight line through the saddle."""
    with mp.workdps(digits):
        alpha, beta, sigma, mu, rho = map(mp.mpf, p)
        (v1, y1), (v0, y0), dt = map(mp.mpf, x1), map(mp.mpf, x0), mp.mpf(dt)
        nu, r, c = 2 * alpha * beta / sigma**2 - 1, 1 - rho**2, rho * beta / sigma - mp.mpf(1) / 2
        scale = 2 / (sigma**2 * dt)
        distance = y1 - y0 - mu * dt - rho / sigma * (v1 - v0 - alpha * beta * dt)
        constant = beta * dt * (1 + nu) / 2 + beta * (v0 - v1) / sigma**2 + nu * mp.log(scale * v1) - mp.loggamma(nu + 1)

        def integrand(u):
            g = dt / 2 * mp.sqrt(beta**2 + 2 * sigma**2 * (u * u * r / 2 - 1j * u * c))
            log_w = mp.log(2 * g / (1 - mp.exp(-2 * g))) - g
            exponent = constant - 1j * u * distance + (1 + nu) * log_w - scale * (v0 + v1) * g * mp.coth(g)
            return mp.exp(exponent) * mp.hyp0f1(nu + 1, scale**2 * v0 * v1 * mp.exp(2 * log_w), maxterms=10**7)

        reach = mp.sqrt(beta**2 + (sigma * c) ** 2 / r + (2 * mp.pi / dt) ** 2) / (sigma * mp.sqrt(r))
        saddle, width = _saddle(integrand, c / r, reach)
        return mp.log(scale / mp.pi * _half_line(lambda x: integrand(x + 1j * saddle), width))


def _saddle(integrand, centre, reach):
    """Golden section for the minimum on the imaginary axis, between the singularities at centre +- reach."""

    def height(eta):
        return mp.log(mp.re(integrand(1j * eta)))

    low, high = centre - reach, centre + reach
    golden = (mp.sqrt(5) - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    fa, fb = height(a), height(b)
    for _ in range(45):
        if fa < fb:
            high, b, fb = b, a, fa
            a = high - golden * (high - low)
            fa = height(a)
        else:
            low, a, fa = a, b, fb
            b = low + golden * (high - low)
            fb = height(b)
    step = (high - low) * 100
    best = (low + high) / 2
    curvature = (height(best + step) - 2 * height(best) + height(best - step)) / step**2
    return best, 1 / mp.sqrt(curvature)


def _half_line(f, width):
    """Integral of Re f from 0: trapezoidal rule in t, x = width * sinh(t), with smaller steps until it settles."""
    value, step = mp.mpf(0), mp.mpf("0.2")
    while True:
        before, step = value, step / mp.sqrt(2)
        value = _trapezoid(f, width, step)
        if abs(before / value - 1) < 1e-13:
            return value


def _trapezoid(f, width, step):
    first = total = mp.re(f(mp.mpf(0))) / 2
    for k in range(1, 5000):
        term = f(width * mp.sinh(k * step)) * mp.cosh(k * step)
        total += mp.re(term)
        if abs(term) < 1e-20 * first:
            return total * width * step
    raise ArithmeticError("the reference integral decays too slowly")


def characteristic_function(a, b, x0, dt, p):
    """E exp(i a V + i b Y), Heston (1993) with a variance term, without branch crossings (Albrecher et al. 2007)."""
    alpha, beta, sigma, mu, rho = p
    v0, y0 = x0
    lean = beta - 1j * rho * sigma * b
    d = np.sqrt(lean**2 + sigma**2 * (b**2 + 1j * b))
    low, high = (lean - d) / sigma**2, (lean + d) / sigma**2
    k = (1j * a - low) / (1j * a - high)
    decay = k * np.exp(-d * dt)
    slope = (low - high * decay) / (1 - decay)
    level = alpha * beta * (low * dt - 2 / sigma**2 * np.log((1 - decay) / (1 - k)))
    return np.exp(level + slope * v0 + 1j * b * (y0 + mu * dt))


def density_by_double_inversion(x1, x0, dt, p, a_max, a_step, b_max, b_step):
    a = np.arange(-a_max, a_max + a_step / 2, a_step)[:, None]
    b = np.arange(-b_max, b_max + b_step / 2, b_step)
    phase = np.exp(-1j * (a * x1[0] + b * x1[1]))
    return np.sum((characteristic_function(a, b, x0, dt, p) * phase).real) * a_step * b_step / (2 * np.pi) ** 2
